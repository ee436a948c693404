// What callers learn of a model.
#pragma once

#include "decode/model_directory.h"
#include "starling/model.h"

namespace starling {

v0::ModelInfo info_of(const ModelDescription& description);

}  // namespace starling
