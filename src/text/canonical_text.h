// What is done to text before a vocabulary cuts it, where the vocabulary does not know it as it stands: characters that are not seen (soft
// hyphens, zero-width spaces, marks of direction) vanish, and letters that are written with separate marks become one character. Without
// that each of them is an unknown symbol in the middle of a word, and the translation is of another text.
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
  std::vector<int64_t> source;  // of each byte and of the end, the byte of the source where what it stands for begins
};

/// The text with the default-ignorable characters that `knows` refuses left out, and with what is left in normalisation form C wherever
/// `knows` refuses it as it stands; nothing if that changes nothing. `knows` says whether a vocabulary has pieces for a text. Malformed
/// bytes stay. Takes time in proportion to the text, and calls of `knows` with texts that together are no longer.
std::optional<CanonicalText> canonical_text(std::string_view text, const std::function<bool(std::string_view)>& knows);

}  // namespace starling
