// Unicode's normalisation form C: a letter and its marks become one code point where there is one. Compatibility forms (wide letters,
// ligatures) stay as they are.
#pragma once

#include <string>
#include <string_view>

namespace starling {

/// Returns the text, valid UTF-8, in normalisation form C.
std::string composed(std::string_view text);

/// Returns whether all characters are ones that this form never changes, whatever stands beside them. Most text passes this quick check;
/// text that fails it may still be composed.
bool is_surely_composed(std::u32string_view text);

/// Returns whether text can be split before this code point and both sides normalised separately, whatever they contain: whether it is
/// neither a mark nor a later part of a Hangul syllable.
bool begins_composition(char32_t c);

}  // namespace starling
