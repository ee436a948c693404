// Which characters are punctuation, symbols or numbers (general categories P, S, N), emoji, or invisible. Tokenizer intl is defined by the
// first three classes; the automatic choice of a tokenizer takes all others, except spaces and control characters, as letters.
#include "text/unicode.h"

namespace starling {

namespace {

constexpr CharacterClass P = CharacterClass::punctuation, S = CharacterClass::symbol, N = CharacterClass::number;

struct ClassRun {
  char32_t first, last;
  CharacterClass what;
};

#include "text/tables/character_class.inc"
#include "text/tables/default_ignorable.inc"
#include "text/tables/emoji.inc"

}  // namespace

CharacterClass character_class(char32_t c) {
  const ClassRun* run = entry_of(kClassRuns, c);
  return run ? run->what : CharacterClass::other;
}

bool is_emoji(char32_t c) { return entry_of(kEmoji, c) != nullptr; }
bool is_default_ignorable(char32_t c) { return c >= 0xAD && entry_of(kDefaultIgnorable, c) != nullptr; }

}  // namespace starling
