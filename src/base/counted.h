// Numbers of things in sentences: "1 update", "2 updates".
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace starling {

// The number and the noun, which takes an s unless there is one.
inline std::string counted(auto count, std::string_view noun) { return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s"); }

}  // namespace starling
