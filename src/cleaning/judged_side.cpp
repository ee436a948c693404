#include "cleaning/judged_side.h"

#include "text/script.h"

namespace starling {
namespace {

std::string copy_key_of(const JudgedSide& side) {
  std::u32string key;
  for (const char32_t c : to_lower(side.characters))
    if (is_alphabetic(c) || character_class(c) == CharacterClass::number) key += c;
  return key.empty() ? std::string(side.text) : encode_utf8(key);
}

}  // namespace

JudgedSide::JudgedSide(std::string_view utf8)
    : text(utf8), characters(decode_utf8(utf8)), words(split_on_space(characters)), copy_key(copy_key_of(*this)) {}

}  // namespace starling
