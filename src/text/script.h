// Which script a letter belongs to, where that tells how a language is written: without spaces, or many characters a word.
#pragma once

#include <cstddef>

namespace starling {

enum class Script { other, kana, han, hangul, thai, lao, tibetan, burmese, khmer };
inline constexpr std::size_t kScripts = 9;

Script script_of(char32_t code_point);

}  // namespace starling
