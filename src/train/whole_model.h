// The whole model of a replica that is divided into stages, on one of its ranks: to translate with, and to save.
#pragma once

#include <memory>

#include "comm/mesh.h"
#include "models/model.h"

namespace starling {

// On the first stage a model for inference with the parameters that the stages have now; null on the others. Collective among the replica.
std::unique_ptr<Model> whole_model(Model& part, const Mesh& mesh);

}  // namespace starling
