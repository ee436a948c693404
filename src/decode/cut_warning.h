// What people are told of lines that were longer than what is translated of them.
#pragma once

#include <cstdint>
#include <string>

#include "decode/translator.h"

namespace starling {

// Returns a warning, a sentence that ends with a line break, of the lines that a translator has cut: at the tokens that were asked for, or
// at fewer that its model can read, where `remedy` helps; "" if there are none.
std::string cut_warning(const Translator& translator, int64_t asked, const char* remedy);

}  // namespace starling
