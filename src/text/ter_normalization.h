// The normalisation that Tercom offers before it looks for edits, as sacreBLEU has it (norm:yes, asian:yes).
#pragma once

#include <string>

namespace starling::detail {

/// Entities decoded and punctuation set apart; with `asian`, Chinese characters and CJK punctuation too, each by itself.
std::string normalize_for_ter(std::string text, bool asian);

}  // namespace starling::detail
