// The algorithm is that of the Unicode Standard, section 3.11: decompose, sort the marks after each letter by their classes, compose.
// Hangul syllables follow from arithmetic (section 3.12), all else from tables.
#include "text/composition.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

#include "text/unicode.h"

namespace starling {

namespace {

struct Decomposition {
  char32_t first, a, b;  // `first` is what decomposes
};
struct CombiningRun {
  char32_t first, last;
  uint8_t combining_class;
};

#include "text/tables/combining_class.inc"
#include "text/tables/decomposition.inc"

constexpr char32_t kSyllables = 0xAC00, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11A7;  // a trailing consonant follows kTrailing
constexpr char32_t kLeadingCount = 19, kVowelCount = 21, kTrailingCount = 28, kSyllableCount = kLeadingCount * kVowelCount * kTrailingCount;

// Whether c is one of `count` code points from `first` on.
constexpr bool is_within(char32_t c, char32_t first, char32_t count) { return c >= first && c - first < count; }

constexpr bool precedes(const Decomposition& x, const Decomposition& y) { return x.a != y.a ? x.a < y.a : x.b < y.b; }

// The decompositions sorted by their two parts.
constexpr auto kByParts = [] {
  std::array<Decomposition, std::size(kDecompositions)> sorted{};
  std::copy(std::begin(kDecompositions), std::end(kDecompositions), sorted.begin());
  std::sort(sorted.begin(), sorted.end(), precedes);
  return sorted;
}();

const Decomposition* decomposition_of(char32_t c) {
  const auto found = std::lower_bound(std::begin(kDecompositions), std::end(kDecompositions), c,
                                      [](const Decomposition& d, char32_t x) { return d.first < x; });
  return found != std::end(kDecompositions) && found->first == c ? found : nullptr;
}

uint8_t combining_class(char32_t c) {
  const CombiningRun* run = c < 0x300 ? nullptr : entry_of(kCombiningRuns, c);
  return run ? run->combining_class : uint8_t{0};
}

void append_decomposed(std::u32string& out, char32_t c) {
  if (is_within(c, kSyllables, kSyllableCount)) {
    const char32_t i = c - kSyllables;
    out.push_back(kLeading + i / (kVowelCount * kTrailingCount));
    out.push_back(kVowels + i / kTrailingCount % kVowelCount);
    if (i % kTrailingCount != 0) out.push_back(kTrailing + i % kTrailingCount);
  } else if (const Decomposition* d = c < 0xC0 ? nullptr : decomposition_of(c)) {
    append_decomposed(out, d->a);
    if (d->b != 0) append_decomposed(out, d->b);
  } else {
    out.push_back(c);
  }
}

// Returns the composition of two code points; 0 if there is none.
char32_t composition_of(char32_t a, char32_t b) {
  if (is_within(a, kLeading, kLeadingCount) && is_within(b, kVowels, kVowelCount))
    return kSyllables + ((a - kLeading) * kVowelCount + (b - kVowels)) * kTrailingCount;
  if (is_within(a, kSyllables, kSyllableCount) && (a - kSyllables) % kTrailingCount == 0 && is_within(b, kTrailing + 1, kTrailingCount - 1))
    return a + (b - kTrailing);
  const auto found = std::lower_bound(kByParts.begin(), kByParts.end(), Decomposition{0, a, b}, precedes);
  if (found == kByParts.end() || found->a != a || found->b != b || entry_of(kNotComposed, found->first) != nullptr) return 0;
  return found->first;
}

// Returns whether c is the second of two code points that can be composed.
bool joins_what_is_before(char32_t c) {
  static const std::u32string seconds = [] {
    std::u32string all;
    for (const Decomposition& d : kDecompositions)
      if (d.b != 0) all.push_back(d.b);
    std::sort(all.begin(), all.end());
    return all;
  }();
  return is_within(c, kVowels, kVowelCount) || is_within(c, kTrailing + 1, kTrailingCount - 1) ||
         std::binary_search(seconds.begin(), seconds.end(), c);
}

}  // namespace

bool begins_composition(char32_t c) {
  if (c < 0x300) return true;
  std::u32string parts;
  append_decomposed(parts, c);
  return combining_class(parts.front()) == 0 && !joins_what_is_before(parts.front());
}

std::u32string composed(std::u32string_view text) {
  std::u32string all;
  for (const char32_t c : text) append_decomposed(all, c);
  for (size_t begin = 0; begin < all.size(); ++begin) {
    size_t end = begin;
    while (end < all.size() && combining_class(all[end]) != 0) ++end;
    std::stable_sort(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end),
                     [](char32_t x, char32_t y) { return combining_class(x) < combining_class(y); });
    begin = std::max(begin, end);
  }
  std::u32string out;
  size_t starter = std::u32string::npos;  // position in `out` of the last code point of class 0
  int last_class = -1;                    // class of the last code point after it in `out`; -1: there is none
  for (const char32_t c : all) {
    const int its_class = combining_class(c);
    if (starter != std::u32string::npos && last_class < its_class)
      if (const char32_t whole = composition_of(out[starter], c)) {
        out[starter] = whole;
        continue;
      }
    if (its_class == 0) starter = out.size();
    last_class = its_class == 0 ? -1 : its_class;
    out.push_back(c);
  }
  return out;
}

}  // namespace starling
