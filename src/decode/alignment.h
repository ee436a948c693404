// From the attention of a search to bytes of texts: which part of a translation came from which part of its source.
#pragma once

#include "decode/search.h"
#include "document/aligned_text.h"
#include "text/vocabulary.h"

namespace starling {

/// The text of a hypothesis that was found with SearchOptions::alignment, with a link for each of its pieces that looked most at a piece of
/// the source; those that looked most at its end have none.
AlignedText align(const EncodedLine& source, const Vocabulary& target, const Hypothesis& hypothesis);

}  // namespace starling
