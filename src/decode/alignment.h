// Maps the attention of a search to bytes of the texts: which part of a translation comes from which part of its source.
#pragma once

#include <span>
#include <string>
#include <string_view>

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
/// spaces in the line and in the hypothesis' text; two of them are a pair if a piece of the one looks at a piece of the other.
std::string alignment_text(const EncodedLine& source, std::string_view line, const Vocabulary& target, const Hypothesis& hypothesis,
                           AlignmentUnit unit);
/// The same for a translation that was given: alignment[i] is the source token that target token i looks at.
std::string alignment_text(const LinkedSide& source, const LinkedSide& target, std::span<const int32_t> alignment, AlignmentUnit unit);

}  // namespace starling
