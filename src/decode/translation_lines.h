// The lines that `starling translate` writes for a sentence.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "decode/translator.h"

namespace starling {

struct LineFormat {
  bool list = false;                            // a line for each translation: number ||| text ||| log-probability ||| score
  std::optional<AlignmentUnit> alignment;       // follows the text as another field, as in Marian's output
  double alignment_threshold = 0;               // as in alignment_text()
  bool soft_alignment = false;                  // instead: the attention itself
  std::optional<AlignmentUnit> scores;          // follows as another field: WordScores= and the log-probability of each
  const ConfidenceModel* confidence = nullptr;  // if given, follows as another field: Confidence= and that of the translation,
                                                // WordConfidence= and those of its words
};

// Returns the text of the first translation as a line, or the list. `source` is the line that they translate.
std::string translation_lines(std::span<const Translation> translations, int64_t number, std::string_view source,
                              const Translator& translator, const LineFormat& format);

}  // namespace starling
