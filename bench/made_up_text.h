// Parallel text of made-up words for benchmarks of data preparation, since the demo corpus with its few hundred words would give flattering
// results: 200,000 stems with endings, frequencies by Zipf's law, lengths as in news text, some numbers and punctuation. The "translation"
// has other words for the same stems in nearly the same order. It is not suited to judging a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace starling {

class MadeUpText {
 public:
  explicit MadeUpText(uint64_t seed);

  /// Generates pair number `index`, a function of (seed, index): two lines of about 130 bytes each, without line ends.
  void pair(uint64_t index, std::string& source, std::string& target) const;

 private:
  uint64_t seed_;
  std::vector<std::string> source_stems_, target_stems_;  // by rank
};

}  // namespace starling
