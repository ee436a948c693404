// The passes work on bytes: every character they look for is ASCII, and no byte of a longer UTF-8 sequence is.
#include "metrics/western_tokenizer.h"

#include "base/ascii.h"

namespace starling::detail {

namespace {

bool is_period_or_comma(char c) { return c == '.' || c == ','; }

// ASCII punctuation that always stands alone: all but apostrophe, comma, hyphen and period. (The space is in the set, too.)
bool is_separate(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

std::string isolate_punctuation(std::string_view in) {
  std::string out;
  out.reserve(2 * in.size());
  for (const char c : in) {
    if (is_separate(c)) {
      out += {' ', c, ' '};
    } else {
      out += c;
    }
  }
  return out;
}

// Code points that become tokens by themselves. Kana stay together: sacreBLEU's rules for them require text that begins with kana, and the
// earlier passes have put a space there. 3200 to 3F22 is what sacreBLEU writes for the block of enclosed letters, 3200 to 32FF.
constexpr CodePoints kAlone[] = {
    {0x2E80, 0x2EFF},                    // radicals
    {0x3001, 0x3002}, {0x3008, 0x3011},  // punctuation and brackets
    {0x3014, 0x301F}, {0x30FB, 0x30FB},  //
    {0x31C0, 0x31EF},                    // strokes
    {0x3200, 0x4DBF},                    // enclosed letters, compatibility, extension A
    {0x4E00, 0x9FFF},                    // unified ideographs
    {0xF900, 0xFAFF}, {0xFE30, 0xFE4F},  // compatibility ideographs and forms
    {0xFF01, 0xFF02}, {0xFF08, 0xFF09},  // full-width punctuation
    {0xFF0C, 0xFF0C}, {0xFF0E, 0xFF0E},  //
    {0xFF1A, 0xFF1B}, {0xFF1F, 0xFF1F},  //
    {0xFF61, 0xFF65},                    // half-width punctuation
};

}  // namespace

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

void decode_entities(std::string& text) {
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
}

std::string split_western(std::string_view sentence, bool possessives) {
  std::string text = isolate_punctuation(sentence);
  if (possessives) replace_all(text, "'s ", " 's ");
  text = split_pairs(text, Alone::second, [](char a, char b) { return !is_ascii_digit(a) && is_period_or_comma(b); });
  text = split_pairs(text, Alone::first, [](char a, char b) { return is_period_or_comma(a) && !is_ascii_digit(b); });
  return split_pairs(text, Alone::second, [](char a, char b) { return is_ascii_digit(a) && b == '-'; });
}

std::string normalize_for_ter(std::string text, bool asian) {
  if (text.empty()) return text;
  replace_all(text, "\n-", "");
  replace_all(text, "\n", " ");
  decode_entities(text);
  text = split_western(" " + text + " ", true);
  return asian ? set_apart(decode_utf8(text), [](char32_t c) { return entry_of(kAlone, c) != nullptr; }) : text;
}

}  // namespace starling::detail
