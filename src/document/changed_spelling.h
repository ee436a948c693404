// Placeholders that a model wrote, but not as they stood: "@ Anna" for "@anna", "% s" for "%s", one emoji of a sequence.
#pragma once

#include <string_view>

#include "document/target_units.h"

namespace starling {

/// As SentencePiece writes what a vocabulary does not know.
constexpr std::string_view kUnknownSymbol = "\u2047";

/// The units, next to each other and none of them kept, that are spelled like a placeholder which stands at `source`; empty if none are.
/// Letters alone must come from there too, because they can be a word of the sentence. Unknown symbols around them are part of them.
UnitRange changed_spelling(const std::vector<TargetUnit>& units, std::string_view placeholder, Range source);

}  // namespace starling
