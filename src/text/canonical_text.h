// Canonicalises text before a vocabulary splits it into pieces, but only where the vocabulary lacks the original form: removes invisible
// characters (soft hyphens, zero-width spaces, direction marks) and composes letters with their separate marks into one character.
// Otherwise each of them would be an unknown symbol in the middle of a word, and the model would translate a different text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace starling {

struct CanonicalText {
  std::string text;
  std::vector<int64_t> source;  // for each byte and for the end: the offset where its origin in the source begins
};

/// Returns the text without the default-ignorable characters that `knows` rejects, and with the rest in normalisation form C wherever
/// `knows` rejects the original; nullopt if that changes nothing. `knows` says whether a vocabulary has pieces for a text. Malformed
/// bytes stay as they are. Takes linear time, and the texts passed to `knows` are together no longer than the text.
std::optional<CanonicalText> canonical_text(std::string_view text, const std::function<bool(std::string_view)>& knows);

}  // namespace starling
