// A small trained model.
#pragma once

#include <string>

namespace starling {

inline const std::string kModel = STARLING_SOURCE_DIR "/tests/fixtures/models/pre/model";

}  // namespace starling
