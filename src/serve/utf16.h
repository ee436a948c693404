// Converts positions in texts to those of JavaScript.
#pragma once

#include <string_view>
#include <vector>

#include "document/aligned_text.h"
#include "serve/api.h"

namespace starling {

// Returns the links of a translation in UTF-16 code units of the source and of its text, in the order of the translation. Links of
// neighbouring pieces to the same source pieces are merged.
std::vector<AlignedSpans> utf16_spans(std::string_view source, const AlignedText& translation);

}  // namespace starling
