// Maps the attention of a search to bytes of the texts: which part of a translation comes from which part of its source.
#pragma once

#include "decode/search.h"
#include "document/aligned_text.h"
#include "text/vocabulary.h"

namespace starling {

/// Returns the text of a hypothesis that was found with SearchOptions::alignment. Each of its pieces whose strongest attention is on a
/// piece of the source gets a link; pieces that attend most to the end of the source get none.
AlignedText align(const EncodedLine& source, const Vocabulary& target, const Hypothesis& hypothesis);

}  // namespace starling
