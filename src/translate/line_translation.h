// Translates lines of text; those that are no text stay as they are.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "decode/translator.h"

namespace starling {

// Translates lines whose translations begin with `beginnings`, or anyhow if there are none. Lines that have no letter, and no beginning,
// stay as they are, unless `all` are translated; they are emptied.
std::vector<std::vector<Translation>> translate_texts(Translator& translator, std::vector<std::string>& lines,
                                                      std::span<const std::string> beginnings, bool all);

}  // namespace starling
