#include "cleaning/repair.h"

#include <algorithm>
#include <optional>

#include "document/html.h"
#include "text/composition.h"
#include "text/script.h"
#include "text/unicode.h"

namespace starling {
namespace {

// What bytes 0x80 to 0x9F are in Windows-1252; 0: nothing, so they stay controls.
constexpr char32_t kWindows[32] = {U'€', 0,    U'‚', U'ƒ', U'„', U'…', U'†', U'‡', U'ˆ', U'‰', U'Š', U'‹', U'Œ', 0, U'Ž', 0,
                                   0,    U'‘', U'’', U'“', U'”', U'•', U'–', U'—', U'˜', U'™', U'š', U'›', U'œ', 0, U'ž', U'Ÿ'};

// Returns the byte that a program took for this character.
std::optional<unsigned char> byte_of(char32_t c) {
  if (c < 0x100) return static_cast<unsigned char>(c);
  for (size_t i = 0; i < 32; ++i)
    if (kWindows[i] == c) return static_cast<unsigned char>(0x80 + i);
  return std::nullopt;
}

// A character whose bytes of UTF-8 stand as characters of their own.
struct MisreadCharacter {
  size_t length = 0;  // characters; 0: none begins here
  char32_t value = 0;
  bool certain = false;  // no text has these characters in a row: not all but the first are marks that may follow a word
  bool alone = false;    // of a range for which one is enough evidence
};

MisreadCharacter misread_at(std::u32string_view text, size_t at) {
  constexpr std::u32string_view kAfterWords = U"«»‹›‘’“”…–—•°®™·‰†‡¹²³´¸¼½¾ŠŽ";
  const auto first = byte_of(text[at]);
  if (!first || *first < 0xC2 || *first > 0xF4) return {};
  const size_t length = *first < 0xE0 ? 2 : *first < 0xF0 ? 3 : 4;
  if (at + length > text.size()) return {};
  std::string bytes(1, static_cast<char>(*first));
  MisreadCharacter m;
  // "grÃ¼n": a capital within a word, or a sign within one.
  const auto is_small = [&](size_t i) { return i < text.size() && letter_case(text[i]) == LetterCase::lower; };
  m.certain = *first == 0xC3 && ((at > 0 && is_small(at - 1)) || is_small(at + length));
  const bool capitals = at > 0 && letter_case(text[at - 1]) == LetterCase::upper;  // after É a no-break space is French
  for (size_t i = 1; i < length; ++i) {
    const auto byte = byte_of(text[at + i]);
    if (!byte || !is_continuation(*byte)) return {};
    bytes += static_cast<char>(*byte);
    m.certain |= !is_one_of(text[at + i], kAfterWords) && !(capitals && text[at + i] == 0xA0);
  }
  const DecodedCodePoint c = decode_utf8_at(bytes);
  if (c.length != static_cast<int>(length) || c.value < 0xA0) return {};
  m.length = length;
  m.value = c.value;
  m.alone = *first == 0xC2 || *first == 0xC3 || *first == 0xE2 || *first == 0xEF || *first == 0xF0;
  return m;
}

bool repair_encoding(std::u32string& text) {
  bool changed = false;
  for (int times = 0; times < 3; ++times) {
    int certain = 0;
    bool alone = false;
    for (size_t i = 0; i < text.size(); ++i)
      if (const MisreadCharacter m = misread_at(text, i); m.length > 0) {
        certain += m.certain;
        alone |= m.certain && m.alone;
        i += m.length - 1;
      }
    if (!alone && certain < 2) break;
    std::u32string now;
    for (size_t i = 0; i < text.size(); ++i) {
      const MisreadCharacter m = misread_at(text, i);
      now += m.length > 0 ? m.value : text[i];
      i += std::max<size_t>(m.length, 1) - 1;
    }
    text = std::move(now);
    changed = true;
  }
  return changed;
}

bool repair_entities(std::string& text) {
  bool changed = false;
  for (int times = 0; times < 2 && text.find('&') != text.npos; ++times) {
    std::string now;
    bool found = false;
    for (size_t i = 0; i < text.size();) {
      const HtmlEntity entity = text[i] == '&' ? html_entity(std::string_view(text).substr(i)) : HtmlEntity{};
      const bool whole = entity.length > 0 && !entity.text.empty() && text[i + entity.length - 1] == ';';
      if (whole)
        now += entity.text;
      else
        now += text[i];
      i += whole ? entity.length : 1;
      found |= whole;
    }
    if (!found) break;
    text = std::move(now);
    changed = true;
  }
  return changed;
}

bool vanishes(char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || c == 0x200B || c == 0x2060 || c == 0xFEFF; }

bool repair_spaces(std::u32string& text) {
  std::u32string now;
  for (const char32_t c : text) {
    const bool ascii_space = c == ' ' || (c >= 0x09 && c <= 0x0D) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!ascii_space && vanishes(c)) continue;
    const bool space = ascii_space || is_unicode_space(c);
    if (!space)
      now += c;
    else if (!now.empty() && !is_unicode_space(now.back()))
      now += ascii_space ? U' ' : c;
  }
  while (!now.empty() && is_unicode_space(now.back())) now.pop_back();
  if (now == text) return false;
  text = std::move(now);
  return true;
}

// Letters that look alike, in Latin and in another script.
struct LookAlike {
  char32_t latin, cyrillic, greek;  // 0: none
};
constexpr LookAlike kLookAlikes[] = {
    {'a', U'а', 0},    {'c', U'с', 0},    {'e', U'е', 0},    {'i', U'і', 0},    {'j', U'ј', 0},    {'o', U'о', U'ο'}, {'p', U'р', 0},
    {'s', U'ѕ', 0},    {'x', U'х', 0},    {'y', U'у', 0},    {'A', U'А', U'Α'}, {'B', U'В', U'Β'}, {'C', U'С', 0},    {'E', U'Е', U'Ε'},
    {'H', U'Н', U'Η'}, {'I', U'І', U'Ι'}, {'J', U'Ј', 0},    {'K', U'К', U'Κ'}, {'M', U'М', U'Μ'}, {'N', 0, U'Ν'},    {'O', U'О', U'Ο'},
    {'P', U'Р', U'Ρ'}, {'S', U'Ѕ', 0},    {'T', U'Т', U'Τ'}, {'X', U'Х', U'Χ'}, {'Y', 0, U'Υ'},    {'Z', 0, U'Ζ'}};

// Returns what a letter looks like in another script; 0 if like none there.
char32_t as_in(std::string_view script, char32_t c) {
  for (const LookAlike& l : kLookAlikes) {
    if (script == "Latn" && ((l.cyrillic != 0 && c == l.cyrillic) || (l.greek != 0 && c == l.greek))) return l.latin;
    if (script == "Cyrl" && c == l.latin) return l.cyrillic;
    if (script == "Grek" && c == l.latin) return l.greek;
  }
  return 0;
}

// Changes the letters of one word, from `first` on; returns whether there was one to change.
bool repair_word(std::u32string& text, size_t first, size_t end) {
  constexpr std::string_view kScripts[] = {"Latn", "Cyrl", "Grek"};
  std::array<int, 3> letters{};
  int all = 0;
  for (size_t i = first; i < end; ++i) {
    const std::string_view script = letter_script(text[i]);
    all += !script.empty();
    for (size_t s = 0; s < 3; ++s) letters[s] += script == kScripts[s];
  }
  const auto most = static_cast<size_t>(std::max_element(letters.begin(), letters.end()) - letters.begin());
  const int others = all - letters[most];
  if (others == 0 || letters[most] < 2 || letters[most] <= others) return false;
  std::u32string now;
  for (size_t i = first; i < end; ++i) {
    const std::string_view script = letter_script(text[i]);
    const bool other = !script.empty() && script != kScripts[most];
    const char32_t as = other ? as_in(kScripts[most], text[i]) : text[i];
    if (as == 0) return false;
    now += as;
  }
  text.replace(first, end - first, now);
  return true;
}

bool repair_lookalikes(std::u32string& text) {
  bool changed = false;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_alphabetic(text[end])) ++end;
    if (end > i + 2) changed |= repair_word(text, i, end);
    i = end + 1;
  }
  return changed;
}

bool is_plain(std::string_view text) {
  bool space = true;
  for (const char c : text) {
    if (c < ' ' || c > '~' || c == '&' || (c == ' ' && space)) return false;
    space = c == ' ';
  }
  return !text.empty() && !space;
}

}  // namespace

std::string repaired(std::string_view text, RepairCounts& counts) {
  std::string now(text);
  if (is_plain(text)) return now;  // nine lines of ten in English
  const auto count = [&](Repair repair, bool changed) { counts[static_cast<size_t>(repair)] += changed; };
  std::u32string characters = decode_utf8(now);
  if (repair_encoding(characters)) {
    count(Repair::encoding, true);
    now = encode_utf8(characters);
  }
  if (repair_entities(now)) {
    count(Repair::entities, true);
    characters = decode_utf8(now);
  }
  if (repair_spaces(characters)) {
    count(Repair::spaces, true);
    now = encode_utf8(characters);
  }
  if (!is_surely_composed(characters))
    if (std::string composed_text = composed(now); composed_text != now) {
      count(Repair::composition, true);
      now = std::move(composed_text);
      characters = decode_utf8(now);
    }
  if (repair_lookalikes(characters)) {
    count(Repair::lookalikes, true);
    now = encode_utf8(characters);
  }
  return now;
}

}  // namespace starling
