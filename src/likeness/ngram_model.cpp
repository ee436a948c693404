#include "likeness/ngram_model.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace starling {
namespace {

uint64_t mixed(uint64_t key) {
  key *= 0x9E3779B97F4A7C15u;
  return key ^ key >> 32;
}

}  // namespace

NgramModel::Count& NgramModel::Counts::at(uint64_t key) {
  if (10 * (size_ + 1) > 7 * places_.size()) grow();
  size_t at = mixed(key) & (places_.size() - 1);
  while (places_[at].key != 0 && places_[at].key != key) at = (at + 1) & (places_.size() - 1);
  if (places_[at].key == 0) {
    places_[at].key = key;
    ++size_;
  }
  return places_[at];
}

const NgramModel::Count* NgramModel::Counts::find(uint64_t key) const {
  if (places_.empty()) return nullptr;
  size_t at = mixed(key) & (places_.size() - 1);
  while (places_[at].key != 0 && places_[at].key != key) at = (at + 1) & (places_.size() - 1);
  return places_[at].key == 0 ? nullptr : &places_[at];
}

void NgramModel::Counts::grow() {
  std::vector<Count> old(places_.empty() ? 1024 : 2 * places_.size());
  old.swap(places_);
  size_ = 0;
  for (const Count& count : old)
    if (count.key != 0) at(count.key) = count;
}

double NgramModel::Counts::discount() const {
  double once = 0, twice = 0;
  for (const Count& count : places_) {
    once += count.key != 0 && count.count == 1;
    twice += count.key != 0 && count.count == 2;
  }
  return once == 0 || twice == 0 ? 0.5 : once / (once + 2 * twice);  // of little text
}

NgramModel::NgramModel(std::span<const WordIds> text, uint32_t words) : words_(words) {
  CHECK(words > 0 && words <= kMostWords, "{} words", words);
  for (const WordIds& sentence : text) {
    uint32_t a = begin(), b = begin();
    const auto add = [&](uint32_t c) {
      ++trigrams_.at(key(a, b, c)).count;
      a = b;
      b = c;
    };
    for (const uint32_t word : sentence) add(known(word));
    add(end());
  }
  constexpr uint64_t kTwoWords = (uint64_t{1} << 42) - 1, kWord = (uint64_t{1} << 21) - 1;
  for (const Count& t : trigrams_.places()) {
    if (t.key == 0) continue;
    const uint64_t parts = t.key - 1;
    Count& after = after_two_.at(key(0, parts >> 42, parts >> 21 & kWord));
    after.count += t.count;
    ++after.types;
    ++bigrams_.at((parts & kTwoWords) + 1).count;
  }
  for (const Count& b : bigrams_.places()) {
    if (b.key == 0) continue;
    const uint64_t parts = b.key - 1;
    Count& after = after_one_.at(key(0, 0, parts >> 21));
    after.count += b.count;
    ++after.types;
    ++unigrams_.at(key(0, 0, parts & kWord)).count;
  }
  for (const Count& u : unigrams_.places()) {
    all_ += u.count;
    seen_words_ += u.key != 0;
  }
  discounts_[0] = trigrams_.discount();
  discounts_[1] = bigrams_.discount();
  discounts_[2] = unigrams_.discount();
}

double NgramModel::probability(uint32_t a, uint32_t b, uint32_t c) const {
  const auto smoothed = [](const Count* count, const Count* after, double discount, double lower) {
    if (!after) return lower;
    const double part = count ? std::max(count->count - discount, 0.0) : 0;
    return (part + discount * after->types * lower) / after->count;
  };
  const double equal = 1 / static_cast<double>(words_ + 1);  // words, the unknown one and the end
  const Count* const word = unigrams_.find(key(0, 0, c));
  const double one =
      all_ == 0 ? equal : ((word ? std::max(word->count - discounts_[2], 0.0) : 0) + discounts_[2] * seen_words_ * equal) / all_;
  const double two = smoothed(bigrams_.find(key(0, b, c)), after_one_.find(key(0, 0, b)), discounts_[1], one);
  return smoothed(trigrams_.find(key(a, b, c)), after_two_.find(key(0, a, b)), discounts_[0], two);
}

double NgramModel::log_probability(const WordIds& sentence) const {
  uint32_t a = begin(), b = begin();
  double sum = 0;
  for (const uint32_t word : sentence) {
    const uint32_t c = known(word);
    sum += std::log(probability(a, b, c));
    a = b;
    b = c;
  }
  return sum + std::log(probability(a, b, end()));
}

}  // namespace starling
