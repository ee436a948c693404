#include "cleaning/shingles.h"

#include <algorithm>
#include <cmath>

#include "base/hash64.h"
#include "text/script.h"
#include "text/unicode.h"

namespace starling {
namespace {

constexpr size_t kFewestShingles = 3, kMostShingles = 10000;
constexpr size_t kFewestHalfWords = 8;  // a letter without spaces is half a word
constexpr char32_t kNumber = '0';       // stands for all digits in a row

bool is_digit(char32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : character_class(c) == CharacterClass::number; }
bool divides_words(char32_t c) {
  if (c < 0x80) return !((c >= 'a' && c <= 'z') || is_digit(c));
  const CharacterClass is = character_class(c);
  return is == CharacterClass::punctuation || is == CharacterClass::symbol;
}

// Takes the words of a side one after the other.
class ShingleMaker {
 public:
  void letter(char32_t c) { word_ += c; }
  void digit() {
    if (word_.empty() || word_.back() != kNumber) word_ += kNumber;
  }
  bool in_number() const { return !word_.empty() && word_.back() == kNumber; }
  void unspaced_letter(char32_t c) {
    end_word();
    word_ = c;
    end_word(1);
  }
  void end_word(size_t half_words = 2) {
    if (word_.empty()) return;
    const bool number = word_.size() == 1 && word_[0] == kNumber;
    if (!number || !after_number_) {
      const uint64_t hash = hash64(std::as_bytes(std::span(word_)));
      const uint64_t both[] = {last_, hash};
      if (half_words_ > 0) hashes_.push_back(static_cast<uint32_t>(hash64(std::as_bytes(std::span(both)))));
      last_ = hash;
      half_words_ += half_words;
    }
    after_number_ = number;
    word_.clear();
  }
  std::vector<uint32_t> finish() {
    std::sort(hashes_.begin(), hashes_.end());
    hashes_.erase(std::unique(hashes_.begin(), hashes_.end()), hashes_.end());
    if (half_words_ < kFewestHalfWords || hashes_.size() < kFewestShingles || hashes_.size() > kMostShingles) hashes_.clear();
    return std::move(hashes_);
  }

 private:
  std::u32string word_;
  bool after_number_ = false;
  uint64_t last_ = 0;  // hash of the word before
  size_t half_words_ = 0;
  std::vector<uint32_t> hashes_;
};

}  // namespace

std::vector<uint32_t> shingles(const JudgedSide& side) {
  ShingleMaker maker;
  const std::u32string lower = to_lower(side.characters);
  for (const std::u32string_view word : split_on_space(lower)) {
    for (size_t i = 0; i < word.size(); ++i) {
      const char32_t c = word[i];
      const bool goes_on = maker.in_number() && i + 1 < word.size() && is_digit(word[i + 1]);  // 1,234.5 is one number
      if (c >= 'a' && c <= 'z')                                                                // most are
        maker.letter(c);
      else if (is_digit(c))
        maker.digit();
      else if (divides_words(c) && !goes_on)
        maker.end_word();
      else if (!divides_words(c) && is_unspaced(c))
        maker.unspaced_letter(c);
      else if (!divides_words(c))
        maker.letter(c);
    }
    maker.end_word();
  }
  return maker.finish();
}

bool are_near(std::span<const uint32_t> a, std::span<const uint32_t> b, double threshold) {
  const size_t all = a.size() + b.size();
  // common / (all - common) >= threshold
  const auto needed = static_cast<size_t>(std::ceil(threshold * static_cast<double>(all) / (1 + threshold) - 1e-9));
  if (std::min(a.size(), b.size()) < needed) return false;
  size_t common = 0, i = 0, k = 0;
  while (i < a.size() && k < b.size()) {
    if (common + std::min(a.size() - i, b.size() - k) < needed) return false;
    common += a[i] == b[k];
    const bool next_a = a[i] <= b[k], next_b = b[k] <= a[i];
    i += next_a;
    k += next_b;
  }
  return common >= needed;
}

}  // namespace starling
