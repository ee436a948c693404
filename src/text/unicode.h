// The few Unicode facts the project needs: lower case, white space, classes of characters. They are utf8proc's, and not the C library's,
// because towlower and iswspace depend on the process's locale, and scores must not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace starling {

/// Converts to lower case by Unicode's full mapping, as Python's str.lower() does: one to one, except for the dotted capital I (two code
/// points) and capital sigma (final form at the end of a word).
std::u32string to_lower(std::u32string_view text);

/// Converts each letter to the capital whose lower case it is; letters without one stay, and so do
/// those whose capitals hardly anybody writes, ß and the Georgian ones.
std::u32string to_upper(std::u32string_view text);
/// to_lower on UTF-8; throws DataError when the text is not valid UTF-8.
std::string to_lower_utf8(std::string_view text);

/// Returns whether the set contains the character.
inline bool is_one_of(char32_t c, std::u32string_view set) { return set.find(c) != std::u32string_view::npos; }

enum class LetterCase { none, lower, upper };

/// Returns the case of a letter; none for other characters, and for letters of scripts that do not begin sentences with a capital.
LetterCase letter_case(char32_t code_point);

enum class CharacterClass { other, punctuation, symbol, number };

/// Returns the general category of a code point: P, S, N, or another (letters, marks, spaces, controls).
CharacterClass character_class(char32_t code_point);

/// Returns whether a code point is an emoji by itself. Digits are not, nor are characters that only join others into sequences.
bool is_emoji(char32_t code_point);

/// Returns the property Default_Ignorable_Code_Point, which invisible characters have, such as soft hyphens, joiners and variation
/// selectors.
bool is_default_ignorable(char32_t code_point);

/// Returns the maximal runs of non-space code points, as str.split() does; the views point into `text`.
std::vector<std::u32string_view> split_on_space(std::u32string_view text);

/// The same for UTF-8; malformed bytes count as letters.
std::vector<std::string_view> split_on_space(std::string_view text);

/// Returns the text with one space for each run of white space, and none at its ends.
std::string with_single_spaces(std::string_view text);

/// Returns `text` without the space code points at its end, as str.rstrip() does; the view points into `text`.
std::string_view without_trailing_space(std::string_view text);

}  // namespace starling
