// Text from a user, a file or a network, made safe for where it is shown. In a message it is quoted, cut if long, and its bytes that would
// upset a terminal are escaped; in a page of HTML it cannot end the element that it is in.
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

// Returns a page of HTML with this JSON in place of the mark /*REPORT*/ that it has in a script element; "" leaves the element empty.
std::string with_page_data(std::string_view page, std::string_view json);

}  // namespace starling
