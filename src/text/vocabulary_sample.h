// Samples the lines that a vocabulary is trained on: distinct lines with their counts, chosen by a seeded hash. The lines with the smallest
// hashes are kept, as many as the bounds allow. The sample therefore depends only on the text and the seed, the count of each line is
// exact, and memory is bounded for a corpus of any size.
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
  int64_t count = 1;  // how often it was read
};

class LineSampler {
 public:
  /// Keeps at most `max_lines` distinct lines with at most `max_bytes` in total; both at least 1.
  LineSampler(uint64_t seed, int64_t max_lines, int64_t max_bytes);

  void add(std::string_view line);
  /// Returns the lines in the order of their first appearance; the sampler is empty afterwards.
  std::vector<SampledLine> take();
  /// Returns whether lines were left out because of the bounds.
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
  uint64_t threshold_ = UINT64_MAX;  // lines with hashes from here on are left out
};

}  // namespace starling
