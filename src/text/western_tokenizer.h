// The rewriting passes of the script mteval-v13a that BLEU's 13a and zh and TER's normalisation have in common. Their order, and that
// a pass never looks again at what it has consumed, are part of the definition.
#pragma once

#include <string>
#include <string_view>

namespace starling::detail {

/// Replaces from left to right, never looking at what it has written.
void replace_all(std::string& text, std::string_view from, std::string_view to);

/// "&lt;" and its like as characters, one after the other: "&amp;lt;" ends as "<".
void decode_entities(std::string& text);

/// ASCII punctuation set apart by spaces; periods and commas stay inside numbers only; a hyphen leaves the digit before it.
std::string split_western(std::string_view sentence, bool possessives = false);

}  // namespace starling::detail
