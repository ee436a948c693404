// Parallel text of made-up words for measurements of data preparation, where the demo corpus with its some hundred words would flatter:
// 200,000 stems with endings, frequencies by Zipf's law, lengths as in news text, some numbers and punctuation. The "translation"
// has other words for the same stems in nearly the same order. Nobody should judge a model by it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace starling {

class MadeUpText {
 public:
  explicit MadeUpText(uint64_t seed);

  /// Pair number `index`, a function of (seed, index): two lines without their ends, of about 130 bytes each.
  void pair(uint64_t index, std::string& source, std::string& target) const;

 private:
  uint64_t seed_;
  std::vector<std::string> source_stems_, target_stems_;  // by rank
};

}  // namespace starling
