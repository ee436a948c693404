// Recognises numbers that people write but that the parser rejects: with a decimal comma, groups of thousands, k or M.
#pragma once

#include <string>

namespace starling {

// Returns the number in the accepted form: "10000" for 10k, 10,000, 10_000 or 1e4, and "10" for 10u (Marian's updates), if a whole number
// is wanted; otherwise "0.1" for 0,1. Returns "" for any other text.
std::string meant_number(const std::string& text, bool whole);

}  // namespace starling
