#include "moses/letters.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"

namespace starling::moses {
namespace {

#include "moses/letters.inc"

// Signs of India's scripts that kill or dot a letter, which sacremoses takes for letters, and two more that its list has.
constexpr CodePoints kSigns[] = {
    {0x93C, 0x93C},     {0x94D, 0x94D},     {0x9BC, 0x9BC},     {0x9CD, 0x9CD},     {0xA3C, 0xA3C},     {0xA4D, 0xA4D},
    {0xABC, 0xABC},     {0xACD, 0xACD},     {0xAFD, 0xAFF},     {0xB3C, 0xB3C},     {0xB4D, 0xB4D},     {0xBCD, 0xBCD},
    {0xC4D, 0xC4D},     {0xCBC, 0xCBC},     {0xCCD, 0xCCD},     {0xD3B, 0xD3C},     {0xD4D, 0xD4D},     {0xDCA, 0xDCA},
    {0xEBA, 0xEBA},     {0x1039, 0x1039},   {0x135F, 0x135F},   {0x1714, 0x1714},   {0x1BAB, 0x1BAB},   {0x1C37, 0x1C37},
    {0x25CC, 0x25CC},   {0xA8C4, 0xA8C4},   {0xA8F3, 0xA8F4},   {0xA953, 0xA953},   {0xAAF6, 0xAAF6},   {0x10A3F, 0x10A3F},
    {0x11046, 0x11046}, {0x110B9, 0x110BA}, {0x11133, 0x11133}, {0x11173, 0x11173}, {0x111C0, 0x111C0}, {0x111CA, 0x111CA},
    {0x11235, 0x11236}, {0x112E9, 0x112EA}, {0x1133C, 0x1133C}, {0x1134D, 0x1134D}, {0x11442, 0x11442}, {0x11446, 0x11446},
    {0x114C2, 0x114C3}, {0x115BF, 0x115C0}, {0x1163F, 0x1163F}, {0x116B6, 0x116B7}, {0x11839, 0x1183A}, {0x119E0, 0x119E0},
    {0x11A34, 0x11A34}, {0x11C3F, 0x11C3F}, {0x11D42, 0x11D42}, {0x11D45, 0x11D45}, {0x11D97, 0x11D97}, {0x1E94A, 0x1E94A},
};

// Chinese, Japanese and Korean for the detokenizers.
constexpr CodePoints kAsian[] = {{0x1100, 0x11FF},   {0x2E80, 0xA4CF},   {0xA840, 0xA87F},  {0xAC00, 0xD7AF},
                                 {0xF900, 0xFAFF},   {0xFE30, 0xFE4F},   {0xFF65, 0xFFDC},  {0x17000, 0x18AFF},
                                 {0x1B000, 0x1B12F}, {0x1B170, 0x1B2FF}, {0x20000, 0x2FFFF}};

template <size_t n>
bool in(const CodePoints (&table)[n], char32_t c) {
  return entry_of(table, c) != nullptr;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_alphabetic(char32_t c) {
  const utf8proc_category_t what = category(c);
  return (what >= UTF8PROC_CATEGORY_LU && what <= UTF8PROC_CATEGORY_LO) || what == UTF8PROC_CATEGORY_NL || in(kOtherAlphabetic, c);
}

bool ascii_alphabetic(char32_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

// Whether sacremoses's lists, which are of the basic plane, may have a letter or number.
bool listed(char32_t c) { return c < 0x10000 && !in(kYounger, c) && !in(kHanScript, c); }

}  // namespace

Letters letters_of(std::string_view text) {
  Letters letters;
  letters.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto [c, length] = decode_utf8_at(text.substr(i));
    const size_t next = i + static_cast<size_t>(std::max(length, 1));
    letters.push_back({length > 0 ? c : 0xFFFD, static_cast<int32_t>(i), static_cast<int32_t>(next)});
    i = next;
  }
  return letters;
}

void append_letters(std::string& to, const Letter* begin, const Letter* end) {
  for (; begin != end; ++begin) append_utf8(to, begin->c == kDotOfSeveral ? U'.' : begin->c);
}

LetterClasses::LetterClasses(std::string_view language, bool perl)
    : perl_(perl), chinese_(language == "zh" || language == "ja"), japanese_(language == "ja"), korean_(language == "ko") {}

bool LetterClasses::alphabetic(char32_t c) const {
  if (c < 0x80) return ascii_alphabetic(c);
  if (c == kDotOfSeveral) return true;
  if (perl_) return is_alphabetic(c);
  return (is_alphabetic(c) && listed(c) && !(c >= 0xAC00 && c <= 0xD7A3)) || in(kSigns, c) || (chinese_ && in(kHan, c)) ||
         (japanese_ && (in(kHiragana, c) || in(kKatakana, c))) || (korean_ && in(kHangul, c));
}

bool LetterClasses::alphanumeric(char32_t c) const {
  if (c < 0x80) return ascii_alphabetic(c) || (c >= '0' && c <= '9');
  return alphabetic(c) || (is_digit(c) && (perl_ || c < 0x10000));
}

bool LetterClasses::number(char32_t c) const {
  if (c < 0x80) return c >= '0' && c <= '9';
  const utf8proc_category_t what = category(c);
  return what >= UTF8PROC_CATEGORY_ND && what <= UTF8PROC_CATEGORY_NO && (perl_ || listed(c));
}

bool LetterClasses::small(char32_t c) const {
  if (c < 0x80) return c >= 'a' && c <= 'z';
  const bool georgian = c >= 0x10D0 && c <= 0x10FF;  // small since Unicode 11
  return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) && (perl_ || !georgian);
}

bool is_digit(char32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : category(c) == UTF8PROC_CATEGORY_ND; }
bool is_currency(char32_t c, bool perl) {
  const bool younger = c >= 0x10000 || (c >= 0x20BE && c <= 0x20C0) || c == 0x7FE || c == 0x7FF;  // than sacremoses's list
  return c < 0x80 ? c == '$' : category(c) == UTF8PROC_CATEGORY_SC && (perl || !younger);
}
bool is_control(char32_t c) {
  const utf8proc_category_t what = category(c);
  return what == UTF8PROC_CATEGORY_CC || what == UTF8PROC_CATEGORY_CF || what == UTF8PROC_CATEGORY_CO;
}
bool is_asian(char32_t c, bool perl) {
  const CodePoints* const range = c < 0x1100 ? nullptr : entry_of(kAsian, c);
  return range && (perl || (c != range->first && c != range->last));
}

}  // namespace starling::moses
