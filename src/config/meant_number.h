// Numbers that people write and no parser here takes, as we write them: with a decimal comma, groups of thousands, k or M.
#pragma once

#include <string>

namespace starling {

// "10000" of 10k, 10,000, 10_000, 10u (Marian's updates) or 1e4 where a whole number is wanted; else "0.1" of 0,1. "" if the text is
// nothing like that.
std::string meant_number(const std::string& text, bool whole);

}  // namespace starling
