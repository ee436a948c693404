#include "cleaning/judged_side.h"

#include <algorithm>

#include "text/script.h"

namespace starling {
namespace {

std::string copy_key_of(const JudgedSide& side) {
  std::string key;
  for (const char32_t c : to_lower(side.characters))
    if (c < 0x80) {
      if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) key += static_cast<char>(c);
    } else if (is_alphabetic(c) || character_class(c) == CharacterClass::number) {
      append_utf8(key, c);
    }
  return key.empty() ? std::string(side.text) : key;
}

}  // namespace

JudgedSide::JudgedSide(std::string_view utf8)
    : text(utf8), characters(decode_utf8(utf8)), words(split_on_space(characters)), copy_key(copy_key_of(*this)) {
  for (const std::u32string_view word : words) shown += word.size();
  letters = static_cast<size_t>(std::count_if(characters.begin(), characters.end(), is_alphabetic));
}

}  // namespace starling
