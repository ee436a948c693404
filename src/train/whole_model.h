// The whole model of a replica that is divided, on one of its ranks: to translate with.
#pragma once

#include <memory>

#include "comm/mesh.h"
#include "models/model.h"

namespace starling {

// On the first rank a model for inference with the parameters that the ranks have now; null on the others. Collective among the replica.
std::unique_ptr<Model> whole_model(Model& part, const Mesh& mesh);

}  // namespace starling
