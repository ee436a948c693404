// Which characters are punctuation, symbols or numbers (general categories P, S, N), emoji, or invisible. Tokenizer intl is defined by the
// first three classes; the automatic choice of a tokenizer takes all others, except spaces and control characters, as letters.
#include <utf8proc.h>

#include "text/unicode.h"

namespace starling {

namespace {

const utf8proc_property_t& property_of(char32_t c) { return *utf8proc_get_property(static_cast<utf8proc_int32_t>(c)); }
constexpr bool within(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

}  // namespace

CharacterClass character_class(char32_t c) {
  const utf8proc_propval_t what = property_of(c).category;
  if (what >= UTF8PROC_CATEGORY_ND && what <= UTF8PROC_CATEGORY_NO) return CharacterClass::number;
  if (what >= UTF8PROC_CATEGORY_PC && what <= UTF8PROC_CATEGORY_PO) return CharacterClass::punctuation;
  return what >= UTF8PROC_CATEGORY_SM && what <= UTF8PROC_CATEGORY_SO ? CharacterClass::symbol : CharacterClass::other;
}

// Here, and below, also what Unicode reserves for characters to come, which utf8proc does not know.
bool is_emoji(char32_t c) {
  const utf8proc_property_t& p = property_of(c);
  if (p.category == UTF8PROC_CATEGORY_CN) return within(c, 0x1F000, 0x1FAFF) || within(c, 0x1FC00, 0x1FFFD);
  return p.boundclass == UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC || p.boundclass == UTF8PROC_BOUNDCLASS_REGIONAL_INDICATOR ||
         within(c, 0x1F3FB, 0x1F3FF);  // tones of skin
}

bool is_default_ignorable(char32_t c) {
  return c >= 0xAD && (property_of(c).ignorable || c == 0x2065 || within(c, 0xFFF0, 0xFFF8) || within(c, 0xE0000, 0xE0FFF));
}

}  // namespace starling
