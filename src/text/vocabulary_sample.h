// What a vocabulary is trained on: different lines with their counts, chosen by a seeded hash. Of all lines those with the smallest
// hashes are kept, as many as the bounds allow. So the sample depends on the text and the seed only, a line's count is exact
// however often it comes, and memory is bounded while a corpus of any size passes by.
#pragma once

#include <cstdint>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace starling {

struct SampledLine {
  std::string text;
  int64_t count = 1;  // times that it was read
};

class LineSampler {
 public:
  /// Keeps at most `max_lines` different lines of at most `max_bytes` together; both at least 1.
  LineSampler(uint64_t seed, int64_t max_lines, int64_t max_bytes);

  void add(std::string_view line);
  /// The lines in the order in which each came first; the sampler is empty afterwards.
  std::vector<SampledLine> take();
  /// Whether lines were left out for want of room.
  bool full() const { return threshold_ != UINT64_MAX; }

 private:
  struct Entry {
    int64_t count = 0;
    uint64_t order = 0;  // of its first appearance
  };
  struct Hash {
    using is_transparent = void;
    uint64_t seed;
    size_t operator()(std::string_view line) const;
  };
  using Lines = std::unordered_map<std::string, Entry, Hash, std::equal_to<>>;

  uint64_t max_lines_, max_bytes_;
  Lines lines_;
  std::priority_queue<std::pair<uint64_t, const std::string*>> largest_;  // hash and line, the largest hash first
  uint64_t bytes_ = 0, seen_ = 0;
  uint64_t threshold_ = UINT64_MAX;  // hashes from here on are left out
};

}  // namespace starling
