// Lower case by tables of runs. Almost every mapping has the same distance as its neighbours (step 1: alphabets; step 2: alternating
// capital and small letters). Two mappings are special: the dotted capital I, which becomes two code points, and capital sigma, whose form
// depends on the letters around it.
#include <unordered_map>

#include "text/unicode.h"

namespace starling {

namespace {

struct LowerRun {
  char32_t first, last;
  int step, distance;
};

#include "text/tables/lower_case.inc"

char32_t lower_one(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  const LowerRun* run = entry_of(kLowerRuns, c);
  if (run == nullptr || (c - run->first) % run->step != 0) return c;
  return static_cast<char32_t>(static_cast<std::int32_t>(c) + run->distance);
}

// Unicode's condition Final_Sigma: there is a cased letter before and none after, ignoring case-ignorable code points.
bool is_final_sigma(std::u32string_view text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && entry_of(kCaseIgnorable, text[before - 1]) != nullptr) --before;
  if (before == 0 || entry_of(kCased, text[before - 1]) == nullptr) return false;
  std::size_t after = at + 1;
  while (after < text.size() && entry_of(kCaseIgnorable, text[after]) != nullptr) ++after;
  return after == text.size() || entry_of(kCased, text[after]) == nullptr;
}

constexpr char32_t kCapitalSigma = 0x3A3, kSmallSigma = 0x3C3, kFinalSigma = 0x3C2, kDottedCapitalI = 0x130, kDotAbove = 0x307,
                   kSharpS = 0xDF;

}  // namespace

LetterCase letter_case(char32_t c) {
  if (c == kDottedCapitalI || lower_one(c) != c) return LetterCase::upper;
  // Georgian has capitals, but no sentence begins with one.
  const bool georgian = c >= 0x10D0 && c <= 0x10FF;
  return !georgian && entry_of(kCased, c) != nullptr ? LetterCase::lower : LetterCase::none;
}

std::u32string to_upper(std::u32string_view text) {
  static const std::unordered_map<char32_t, char32_t> kCapitals = [] {
    std::unordered_map<char32_t, char32_t> all{{kFinalSigma, kCapitalSigma}};
    for (const LowerRun& run : kLowerRuns)
      for (char32_t c = run.first; c <= run.last; c += static_cast<char32_t>(run.step)) all.try_emplace(lower_one(c), c);
    for (char32_t c = 'A'; c <= 'Z'; ++c) all[c + 32] = c;
    std::erase_if(all, [](const auto& pair) { return pair.first == kSharpS || letter_case(pair.first) == LetterCase::none; });
    return all;
  }();
  std::u32string out(text);
  for (char32_t& c : out)
    if (const auto capital = kCapitals.find(c); capital != kCapitals.end()) c = capital->second;
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
