// Counts common n-grams without building a string for each: an n-gram is a 64-bit fingerprint, made by mixing in its tokens one by one.
// The probability that two different n-grams of a sentence pair share a fingerprint is below 1e-11, even for sentences of ten thousand
// n-grams. Internal to the metrics.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace starling::detail {

using Fingerprint = std::uint64_t;

/// Returns the fingerprint of an n-gram extended by one token; start from kEmptyNgram.
constexpr Fingerprint kEmptyNgram = 0x9E3779B97F4A7C15ULL;
inline Fingerprint extend(Fingerprint ngram, Fingerprint token) {
  Fingerprint x = ngram * 0xD6E8FEB86659FD93ULL + token + 0x632BE59BD9B4E019ULL;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ULL;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ULL;
  return x ^ (x >> 32);
}

/// Calls visit(order, fingerprint) for each n-gram of 1 to max_order tokens; the order of a single token is 1.
template <typename Visit>
void for_each_ngram(std::span<const Fingerprint> tokens, int max_order, Visit visit) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const int orders = static_cast<int>(std::min<std::size_t>(max_order, tokens.size() - i));
    Fingerprint ngram = kEmptyNgram;
    for (int n = 1; n <= orders; ++n) visit(n, ngram = extend(ngram, tokens[i + n - 1]));
  }
}

/// Returns how many n-grams of the given order a sentence of `tokens` tokens has.
inline std::int64_t ngram_count(std::size_t tokens, int order) {
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(tokens) - order + 1);
}

/// The n-grams that a hypothesis may still match: each as often as it occurs in the reference where it is most frequent. An open-addressing
/// hash table that is reused for every sentence; entries of earlier sentences are recognised by their epoch.
class ClippedCounts {
 public:
  /// Forgets everything and makes room for `ngrams` additions.
  void clear(std::size_t ngrams) {
    const std::size_t capacity = std::bit_ceil(std::max<std::size_t>(64, 2 * ngrams));
    if (capacity > entries_.size()) entries_.assign(capacity, {});
    mask_ = entries_.size() - 1;
    ++epoch_;
    reference_ = 0;
  }

  /// Begins another reference, to which the n-grams added from now on belong.
  void begin_reference() { ++reference_; }

  void add(Fingerprint ngram) {
    Entry& entry = find(ngram);
    if (entry.reference != reference_) {
      entry.reference = reference_;
      entry.in_reference = 0;
    }
    entry.allowed = std::max(entry.allowed, ++entry.in_reference);
  }

  /// Returns whether the n-gram was still allowed, and then allows it once less. Call after the last add.
  bool take(Fingerprint ngram) {
    Entry& entry = find(ngram);
    if (entry.allowed == 0) return false;
    --entry.allowed;
    return true;
  }

 private:
  struct Entry {
    Fingerprint ngram = 0;
    std::uint64_t epoch = 0;
    std::uint32_t reference = 0, in_reference = 0, allowed = 0;
  };

  // A lookup of an absent n-gram occupies a slot too, hence clear() must count the hypothesis' n-grams as well.
  Entry& find(Fingerprint ngram) {
    std::size_t slot = ngram & mask_;
    while (entries_[slot].epoch == epoch_ && entries_[slot].ngram != ngram) slot = (slot + 1) & mask_;
    Entry& entry = entries_[slot];
    if (entry.epoch != epoch_) entry = {ngram, epoch_, 0, 0, 0};
    return entry;
  }

  std::vector<Entry> entries_;
  std::size_t mask_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint32_t reference_ = 0;
};

}  // namespace starling::detail
