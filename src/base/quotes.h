// Text from a user, a file or a network for a message: quoted, with bytes escaped that would upset a terminal, and cut if long.
#pragma once

#include <string>
#include <string_view>

namespace starling {

// Text whose control characters, marks of writing direction and bytes that are not UTF-8 are written \x1b; at most 200 bytes and "...".
std::string printable(std::string_view text);
// The same of at most 80 bytes, in single quotes.
std::string in_quotes(std::string_view text);

// A whole message: the same, neither cut nor without its tabs and ends of lines. Paths in it may be anybody's.
std::string without_controls(std::string_view text);

}  // namespace starling
