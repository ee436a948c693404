// Counts with their nouns, for messages: "1 update", "2 updates".
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace starling {

// Returns the number and the noun, with an "s" unless the count is 1.
inline std::string counted(auto count, std::string_view noun) { return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s"); }

}  // namespace starling
