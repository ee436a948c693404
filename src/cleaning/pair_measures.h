// Measures a pair, for the rules to judge.
#pragma once

#include <string_view>

#include "cleaning/pair_language.h"
#include "cleaning/rules.h"

namespace starling {

// Of a side that is too long by these options only its length is measured: the rest would take too long.
PairMeasures measured(const JudgedSide& source, const JudgedSide& target, const PairKind& kind, const CleanOptions& options);
// The same for a line of one language. Nothing is compared with another side, so any markup and any repetition counts.
PairMeasures measured(const JudgedSide& line, const PairKind& kind, const CleanOptions& options);

// Returns whether a text has more characters than the options allow, which its bytes may tell.
bool is_surely_too_long(std::string_view utf8, const CleanOptions& options);
// What is known of a pair with such a text.
PairMeasures measured_as_too_long();

}  // namespace starling
