// Quotes foreign text within a message.
#pragma once

#include <string>
#include <string_view>

namespace starling {

// Returns the text in single quotes, with control bytes escaped and long text shortened: safe to print in a message.
std::string in_quotes(std::string_view text);

}  // namespace starling
