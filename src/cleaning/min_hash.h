// Finds sets that may be alike without comparing each with each: of every set the least hashes by several functions (MinHash; Broder 1997),
// in bands of some rows. Two sets of Jaccard similarity J have one least hash in common with probability J, a band of r with J^r, and at
// least one of b bands with 1 - (1 - J^r)^b.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace starling {

inline constexpr size_t kBands = 16;
using Bands = std::array<uint32_t, kBands>;  // a hash of each; of n sets about n / 2^32 others have one by chance

class MinHash {
 public:
  // As many rows as let sets with a similarity of the threshold have a common band in 95 of 100 cases, 3 to 8. (With 3 rows, for less than
  // 0.56, it is 88 at 0.5 and 97 at 0.6.)
  explicit MinHash(double threshold);
  size_t rows() const { return rows_; }
  // Returns the bands of the pair of two sets, of which both count. Whatever similarity both sides of two pairs have at least, the two
  // have as pairs.
  Bands bands(std::span<const uint32_t> source, std::span<const uint32_t> target) const;

 private:
  static constexpr size_t kMostRows = 8;  // more take time
  size_t rows_;
  std::array<std::array<uint32_t, kBands>, kMostRows> low_, high_;  // factors of each function
};

}  // namespace starling
