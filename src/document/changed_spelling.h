// Finds placeholders that a model wrote with a different spelling: "@ Anna" for "@anna", "% s" for "%s", one emoji of a sequence.
#pragma once

#include <string_view>

#include "document/target_units.h"

namespace starling {

/// The symbol that SentencePiece writes for what a vocabulary does not know.
constexpr std::string_view kUnknownSymbol = "\u2047";

/// Returns the consecutive units, none of them kept, that are spelled like the placeholder at `source`; empty if there are none. Units of
/// letters only must also come from there, because they could be a word of the sentence. Adjacent unknown symbols are included.
UnitSpan changed_spelling(const std::vector<TargetUnit>& units, std::string_view placeholder, Range source);

}  // namespace starling
