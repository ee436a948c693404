// The pairs of words that occur together in a text, with a probability and an expected count each: for each source word a sorted list of
// target words.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace starling {

using WordIds = std::vector<uint32_t>;
constexpr uint32_t kNullWord = 0;  // source word that links to nothing; ids of words begin at 1

struct NumberedPair {
  WordIds source, target;
};

class WordPairs {
 public:
  // Finds the pairs, those of the null word included. Takes 8 bytes for each occurrence of a part of the text at a time.
  explicit WordPairs(std::span<const NumberedPair> text);
  // Takes pairs, source << 32 | target, in ascending order and each once.
  explicit WordPairs(const std::vector<uint64_t>& pairs);

  static constexpr size_t kNone = ~size_t{0};
  // Returns the place of a pair, or kNone.
  size_t find(uint32_t source, uint32_t target) const {
    if (source >= sources()) return kNone;
    const auto first = targets_.begin() + static_cast<ptrdiff_t>(begins_[source]),
               last = targets_.begin() + static_cast<ptrdiff_t>(begins_[source + 1]);
    const auto at = std::lower_bound(first, last, target);
    return at != last && *at == target ? static_cast<size_t>(at - targets_.begin()) : kNone;
  }
  size_t size() const { return targets_.size(); }
  size_t sources() const { return begins_.size() - 1; }
  size_t begin(uint32_t source) const { return begins_[source]; }
  size_t end(uint32_t source) const { return begins_[source + 1]; }
  uint32_t target(size_t place) const { return targets_[place]; }

 private:
  std::vector<size_t> begins_;  // of each source word, and the end
  std::vector<uint32_t> targets_;
};

}  // namespace starling
