// t(target word | source word) of the word pairs of a text, and their expected counts in training. Counts are whole numbers of 2^-32, so
// that their sums do not depend on the order in which threads add to them.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "alignment/word_pairs.h"

namespace starling {

class TranslationTable {
 public:
  static constexpr float kLeastKept = 1e-6f;

  // Of the pairs of a text, all equally probable.
  explicit TranslationTable(std::span<const NumberedPair> text) : pairs_(text), counts_(pairs_.size()) {}
  // What another table has learnt.
  TranslationTable(WordPairs pairs, std::vector<float> probabilities);

  // Returns t, above 0; of a pair that was never seen together, that of the first iteration.
  double at_place(size_t place) const {
    return probabilities_.empty() || place == WordPairs::kNone ? kFirst : std::max(kLeast, static_cast<double>(probabilities_[place]));
  }
  // The same of two words; sets `place` to that of their pair.
  double probability(uint32_t source, uint32_t target, size_t& place) const { return at_place(place = pairs_.find(source, target)); }
  const WordPairs& pairs() const { return pairs_; }

  // Adds to the expected count of a pair, from any thread.
  void count(size_t place, double expected) {
    if (place != WordPairs::kNone)
      counts_[place].fetch_add(static_cast<uint64_t>(std::llround(expected * kUnit)), std::memory_order_relaxed);
  }
  void clear_counts();
  // Takes the probabilities from the counts, by a Dirichlet prior of that alpha (variational Bayes), or if it is 0 as they are.
  void maximize(double alpha);
  // When training is over: frees the counts, and unless `all` are kept makes probabilities below kLeastKept those of pairs that were never
  // seen, so that files need not have them.
  void finish(bool all);

 private:
  static constexpr double kUnit = 4294967296.;  // of a count
  static constexpr double kFirst = 1e-9f;       // every t in the first iteration
  static constexpr double kLeast = 1e-30;       // of a probability that is learnt; a float holds it

  WordPairs pairs_;
  std::vector<float> probabilities_;           // empty at first: all are equal
  std::vector<std::atomic<uint64_t>> counts_;  // expected, in units of 2^-32
};

}  // namespace starling
