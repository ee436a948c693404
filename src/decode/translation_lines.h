// The lines that `starling translate` writes for a sentence.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "decode/translator.h"

namespace starling {

// Returns the text of the first translation as a line or, with `list`, a line for each of them: number ||| text ||| log-probability |||
// score. With `alignment`, which gives the alignment of a translation, each text is followed by another field, ||| alignment, as in
// Marian's output.
std::string translation_lines(std::span<const Translation> translations, int64_t number, bool list,
                              const std::function<std::string(const Translation&)>& alignment = {});

}  // namespace starling
