// Measures a pair, for the rules to judge.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cleaning/judged_side.h"
#include "cleaning/rules.h"

namespace starling {

// What the pairs of a corpus have in common.
struct PairKind {
  PairKind(const std::string& source_language, const std::string& target_language);
  std::vector<std::string> source_languages, target_languages;   // codes, one each; empty: unknown
  std::vector<std::string_view> source_scripts, target_scripts;  // empty: unknown
  double usual_ratio = 1;  // characters of targets over those of sources; 0: not known, so the ratio is not judged
  bool one_side = false;   // text in one language, which has no targets
};

// Of a side that is too long by these options only its length is measured: the rest would take too long.
PairMeasures measured(const JudgedSide& source, const JudgedSide& target, const PairKind& kind, const CleanOptions& options);
// Of a line of one language, of which what compares two sides is not measured: any markup or repetition counts.
PairMeasures measured(const JudgedSide& line, const PairKind& kind, const CleanOptions& options);

// Returns whether a text has more characters than the options allow, which its bytes may tell.
bool is_surely_too_long(std::string_view utf8, const CleanOptions& options);

}  // namespace starling
