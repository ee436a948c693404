// Whether the sides of a pair are in their languages and scripts. Both sides are looked at together: words that both have are names, codes
// and formats, which are in no language.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cleaning/judged_side.h"

namespace starling {

// What the pairs of a corpus have in common.
struct PairKind {
  PairKind(const std::string& source_language, const std::string& target_language);
  std::vector<std::string> source_languages, target_languages;   // codes, one each; empty: unknown
  std::vector<std::string_view> source_scripts, target_scripts;  // empty: unknown
  double usual_ratio = 1;  // characters of targets over those of sources; 0: not known, so the ratio is not judged
  bool one_side = false;   // text in one language, which has no targets
};

// Returns the share of a side's letters that are in its language's scripts, of all its words or of those that the other side does not have,
// whichever is more; 1 of few letters.
double own_script(const JudgedSide& side, const JudgedSide& other, const std::vector<std::string_view>& scripts);

// Returns whether a pair has a side in another language than its own: by its own words if they are enough, or because both sides look like
// the other's, or because half of its words are the other side's, which is in its own language.
bool other_language(const JudgedSide& source, const JudgedSide& target, const PairKind& kind);
// Returns whether a line of one language is in another.
bool other_language(const JudgedSide& line, const PairKind& kind);

// Returns whether a side has so many words or, where no spaces divide them, letters enough for them. Names and titles are often the same in
// both languages, sentences never.
bool has_words(const JudgedSide& side, size_t words);
// Returns whether some words begin with small letters, or have no case, as those of a sentence do and those of a name do not.
bool is_no_name(const JudgedSide& side);

}  // namespace starling
