// The script of a letter, for those scripts that are written without spaces or with many characters per word.
#pragma once

#include <cstddef>

namespace starling {

enum class Script { other, kana, han, hangul, thai, lao, tibetan, burmese, khmer };
inline constexpr std::size_t kScripts = 9;

Script script_of(char32_t code_point);
/// Returns whether a letter belongs to a script that is written without spaces.
bool is_unspaced(char32_t code_point);

}  // namespace starling
