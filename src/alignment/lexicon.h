// What two aligners have learnt, one for each direction, in memory and as text: to align more text by it, and to see which words translate
// which.
#pragma once

#include <optional>
#include <string>

#include "alignment/aligner.h"
#include "alignment/linked_text.h"
#include "base/files.h"

namespace starling {

struct Lexicon {
  AlignedParts parts = AlignedParts::words;
  PartNumbers source, target;
  std::optional<Aligner> forward, reverse;  // reverse: of target words as sources
};

// Writes a Zstandard archive of lines with tabs:
//
//   starling-lexicon-1 <parts> <1 with the diagonal prior, else 0>
//   tension  forward  4.5
//   forward  house  Haus  0.75           t(Haus | house); an empty source is the null word
//   reverse  Haus  house  0.8
//
// Probabilities below 1e-6 are left out. Throws IoError.
void write_lexicon(const Lexicon& lexicon, bool diagonal, FileSystem& files, const std::string& path);

// Reads what write_lexicon() wrote; `options` are the aligners' but for the prior. Throws IoError, and DataError (file:line) for other
// text.
Lexicon read_lexicon(const std::string& path, AlignerOptions options);

}  // namespace starling
