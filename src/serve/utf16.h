// Places in texts as JavaScript counts them.
#pragma once

#include <string_view>
#include <vector>

#include "document/aligned_text.h"
#include "serve/api.h"

namespace starling {

// The links of a translation in UTF-16 code units of the source and of its text, in the order of the translation; those of neighbouring
// pieces of the same source pieces become one.
std::vector<AlignedSpans> utf16_spans(std::string_view source, const AlignedText& translation);

}  // namespace starling
