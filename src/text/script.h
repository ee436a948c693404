// The script of a letter: for those scripts that are written without spaces or with many characters per word, and by ISO 15924's code.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace starling {

enum class Script { other, kana, han, hangul, thai, lao, tibetan, burmese, khmer };
inline constexpr std::size_t kScripts = 9;

Script script_of(char32_t code_point);
/// Returns whether a letter belongs to a script that is written without spaces.
bool is_unspaced(char32_t code_point);

/// Returns whether a code point is a letter, or a mark or number that counts as one: Unicode's property Alphabetic, but for a few marks.
bool is_alphabetic(char32_t code_point);
/// Returns the code of a letter's script, such as "Latn"; "" for scripts of small communities and history, and what is not a letter.
std::string_view letter_script(char32_t code_point);
/// Returns the codes of the scripts that a language is written in, such as Hira, Kana and Hani for "ja"; none for a language that is not
/// known. A code may name its script ("sr-Latn").
std::vector<std::string_view> scripts_of_language(std::string_view code);

}  // namespace starling
