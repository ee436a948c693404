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
  AlignmentModel model = AlignmentModel::hmm;
  PartNumbers source, target;
  std::optional<Aligner> forward, reverse;  // reverse: of target words as sources
};

// Writes a Zstandard archive of lines with tabs:
//
//   starling-lexicon-2 <parts> <model>
//   tension  forward  4.5                of the model diagonal
//   jump     forward  -1     0.04        of the HMM: the weight of each width of a jump, the largest 1
//   start    forward  1      0.9         and that of each position at which a sentence begins to be linked
//   forward  house    Haus   0.75        t(Haus | house); an empty source is the null word
//   reverse  Haus     house  0.8
//
// Probabilities below TranslationTable::kLeastKept are left out. Throws IoError.
void write_lexicon(const Lexicon& lexicon, FileSystem& files, const std::string& path);

// Reads what write_lexicon() wrote; `options` are the aligners' but for the model. Throws IoError, and DataError (file:line) for other
// text.
Lexicon read_lexicon(const std::string& path, AlignerOptions options);

}  // namespace starling
