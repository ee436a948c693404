// The version of the program: CMakeLists.txt names it, and nothing else does.
#pragma once

#include <string_view>

namespace starling {

extern const std::string_view kVersion;

}  // namespace starling
