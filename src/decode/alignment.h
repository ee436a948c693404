// Maps the attention of a search to bytes of the texts: which part of a translation comes from which part of its source.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/search.h"
#include "document/aligned_text.h"
#include "text/links.h"
#include "text/vocabulary.h"

namespace starling {

/// Returns the text of a hypothesis that was found with SearchOptions::alignment. Each of its pieces whose strongest attention is on a
/// piece of the source gets a link; pieces that attend most to the end of the source get none.
AlignedText align(const EncodedLine& source, const Vocabulary& target, const Hypothesis& hypothesis);

/// Returns pairs "source-target" with spaces between them, as Marian, fast_align and Moses write them: positions count from 0, pairs are in
/// ascending order, each once. Pieces are those of the vocabularies, without prefixes and ends of sentences. Words are what stands between
/// spaces in the line and in the hypothesis' text; two of them are a pair if a piece of the one looks at a piece of the other. A piece
/// looks at the one that its attention is largest on or, with a threshold above 0, at all that have more than that (needs
/// Hypothesis::attention).
std::string alignment_text(const EncodedLine& source, std::string_view line, const Vocabulary& target, const Hypothesis& hypothesis,
                           AlignmentUnit unit, double threshold = 0);
/// The same for a translation that was given: alignment[i] is the source token that target token i looks at.
std::string alignment_text(const LinkedSide& source, const LinkedSide& target, std::span<const int32_t> alignment, AlignmentUnit unit);

/// Returns Hypothesis::attention as Marian writes soft alignments: for each target piece, its end of sentence included, the attention to
/// each source piece and the source's end with commas between them; spaces between target pieces.
std::string soft_alignment_text(const Hypothesis& hypothesis);

/// Returns the log-probabilities (nats) of a hypothesis' pieces and of its end, or those of its words: the mean of a word's pieces.
std::vector<double> unit_scores(const Hypothesis& hypothesis, const Vocabulary& target, AlignmentUnit unit);

}  // namespace starling
