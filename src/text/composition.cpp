#include "text/composition.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"

namespace starling {

bool begins_composition(char32_t c) {
  if (c < 0x300) return true;
  const utf8proc_category_t what = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  const bool mark = what >= UTF8PROC_CATEGORY_MN && what <= UTF8PROC_CATEGORY_ME;
  // Not U+11A7 between them: see composed().
  const bool within_syllable = (c >= 0x1161 && c <= 0x1175) || (c >= 0x11A8 && c <= 0x11C2);
  return !mark && !within_syllable;
}

bool is_surely_composed(std::u32string_view text) {
  // Latin, Cyrillic, punctuation, kana, Han, wide forms.
  constexpr CodePoints kAlone[] = {{0, 0x2FF},       {0x400, 0x482},   {0x2010, 0x2027}, {0x2030, 0x205E},
                                   {0x3041, 0x3096}, {0x30A1, 0x30FA}, {0x4E00, 0x9FFF}, {0xFF01, 0xFF5E}};
  return std::all_of(text.begin(), text.end(), [&](char32_t c) { return c <= kAlone[0].last || entry_of(kAlone, c) != nullptr; });
}

std::string composed(std::string_view text) {
  constexpr std::string_view kLost = "\u11A7";  // by utf8proc 2.8, behind a syllable
  if (const size_t at = text.find(kLost); at != text.npos)
    return composed(text.substr(0, at)) + std::string(kLost) + composed(text.substr(at + kLost.size()));
  constexpr auto kForm = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  constexpr utf8proc_ssize_t kMostParts = 4;  // of a canonical decomposition
  std::vector<utf8proc_int32_t> all;
  all.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const DecodedCodePoint c = decode_utf8_at(text.substr(at));
    utf8proc_int32_t parts[kMostParts];
    const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.value), parts, kMostParts, kForm, nullptr);
    CHECK(c.length > 0 && count >= 0 && count <= kMostParts, "{} code points of U+{:04X}", count, static_cast<uint32_t>(c.value));
    all.insert(all.end(), parts, parts + count);
    at += static_cast<size_t>(c.length);
  }
  // utf8proc_decompose() sorts marks too, but in time that grows with the square of their number.
  const auto order = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  for (auto first = all.begin(); first != all.end();) {
    const auto end = std::find_if(first, all.end(), [&](utf8proc_int32_t c) { return order(c) == 0; });
    std::stable_sort(first, end, [&](utf8proc_int32_t a, utf8proc_int32_t b) { return order(a) < order(b); });
    first = end == all.end() ? end : end + 1;
  }
  const utf8proc_ssize_t count = utf8proc_normalize_utf32(all.data(), std::ssize(all), kForm);
  std::string out;
  for (utf8proc_ssize_t i = 0; i < count; ++i) append_utf8(out, static_cast<char32_t>(all[static_cast<size_t>(i)]));
  return out;
}

}  // namespace starling
