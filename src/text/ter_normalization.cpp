#include "text/ter_normalization.h"

#include <algorithm>
#include <iterator>

#include "text/unicode.h"
#include "text/western_tokenizer.h"

namespace starling::detail {

namespace {

struct Range {
  char32_t first, last;
};

// Code points that stand alone. Kana stay together: sacreBLEU's rules for them ask for text that begins with kana, and the passes
// before have put a space there. 3200 to 3F22 is what sacreBLEU writes for the block of enclosed letters, 3200 to 32FF.
constexpr Range kAlone[] = {
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

std::string isolate_asian(std::string_view text) {
  std::string out;
  out.reserve(2 * text.size());
  for (const char32_t c : decode_utf8(text)) {
    const bool alone = std::any_of(std::begin(kAlone), std::end(kAlone), [c](const Range& r) { return c >= r.first && c <= r.last; });
    if (alone) out += ' ';
    append_utf8(out, c);
    if (alone) out += ' ';
  }
  return out;
}

}  // namespace

std::string normalize_for_ter(std::string text, bool asian) {
  if (text.empty()) return text;
  replace_all(text, "\n-", "");
  replace_all(text, "\n", " ");
  decode_entities(text);
  text = split_western(" " + text + " ", true);
  return asian ? isolate_asian(text) : text;
}

}  // namespace starling::detail
