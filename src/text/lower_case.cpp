// Lower case by utf8proc, one code point for each, but for two: the dotted capital I, which becomes two code points, and capital sigma,
// whose form depends on the letters around it.
#include <utf8proc.h>

#include "text/unicode.h"

namespace starling {

namespace {

constexpr char32_t kCapitalSigma = 0x3A3, kSmallSigma = 0x3C3, kFinalSigma = 0x3C2, kDottedCapitalI = 0x130, kDotAbove = 0x307,
                   kSharpS = 0xDF;

char32_t lower_one(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

// Unicode's property Cased.
bool is_cased(char32_t c) {
  const auto code = static_cast<utf8proc_int32_t>(c);
  return utf8proc_islower(code) || utf8proc_isupper(code) || utf8proc_category(code) == UTF8PROC_CATEGORY_LT;
}

// Unicode's property Case_Ignorable: these categories, and the marks that stand within words.
bool is_case_ignorable(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return is_one_of(c, U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A");
  }
}

// Unicode's condition Final_Sigma: there is a cased letter before and none after, ignoring case-ignorable code points.
bool is_final_sigma(std::u32string_view text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

bool is_georgian(char32_t c) { return c >= 0x10D0 && c <= 0x10FF; }

}  // namespace

LetterCase letter_case(char32_t c) {
  if (lower_one(c) != c) return LetterCase::upper;
  // Georgian has capitals, but no sentence begins with one.
  return !is_georgian(c) && is_cased(c) ? LetterCase::lower : LetterCase::none;
}

std::u32string to_upper(std::u32string_view text) {
  std::u32string out(text);
  for (char32_t& c : out) {
    const auto capital = static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
    if (c == kFinalSigma || (capital != c && lower_one(capital) == c && c != kSharpS && !is_georgian(c))) c = capital;
  }
  return out;
}

std::u32string to_lower(std::u32string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    if (c == kDottedCapitalI) {
      out.push_back(U'i');
      out.push_back(kDotAbove);
    } else if (c == kCapitalSigma) {
      out.push_back(is_final_sigma(text, i) ? kFinalSigma : kSmallSigma);
    } else {
      out.push_back(lower_one(c));
    }
  }
  return out;
}

}  // namespace starling
