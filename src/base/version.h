// The version of the program. It is set in CMakeLists.txt and nowhere else.
#pragma once

#include <string_view>

namespace starling {

extern const std::string_view kVersion;

}  // namespace starling
