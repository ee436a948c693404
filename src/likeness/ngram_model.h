// A trigram model with interpolated Kneser-Ney smoothing (Kneser and Ney 1995; Chen and Goodman 1999), one discount an order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "alignment/word_pairs.h"

namespace starling {

class NgramModel {
 public:
  static constexpr uint32_t kMostWords = (1u << 21) - 3;
  // Trains on sentences of numbers from 1 to words - 1; 0 stands for a word that is not known. At most kMostWords words.
  NgramModel(std::span<const WordIds> text, uint32_t words);

  // Returns the natural logarithm of a sentence's probability, its end included. Numbers that the model does not have are unknown words.
  double log_probability(const WordIds& sentence) const;
  // Returns the probability of word c after a and b. After words that were never seen it is that after fewer words.
  double probability(uint32_t a, uint32_t b, uint32_t c) const;
  uint32_t begin() const { return words_; }    // stands before the first word, twice
  uint32_t end() const { return words_ + 1; }  // stands after the last

 private:
  struct Count {
    uint64_t key = 0;  // 0: free
    uint32_t count = 0, types = 0;
  };
  // Counts by key, in an open-addressing table.
  class Counts {
   public:
    Count& at(uint64_t key);
    const Count* find(uint64_t key) const;
    const std::vector<Count>& places() const { return places_; }
    double discount() const;  // n1 / (n1 + 2 n2)

   private:
    void grow();
    std::vector<Count> places_;
    size_t size_ = 0;
  };
  static uint64_t key(uint64_t a, uint64_t b, uint64_t c) { return (a << 42 | b << 21 | c) + 1; }
  uint32_t known(uint32_t word) const { return word < words_ ? word : 0; }

  const uint32_t words_;
  Counts trigrams_, bigrams_, unigrams_;  // occurrences, and words that stand before it
  Counts after_two_, after_one_;          // what follows: sum of counts, and how many words
  double all_ = 0, seen_words_ = 0;       // of the unigrams
  double discounts_[3] = {};              // of trigrams, bigrams, unigrams
};

}  // namespace starling
