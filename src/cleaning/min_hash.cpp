#include "cleaning/min_hash.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/hash64.h"

namespace starling {
namespace {

constexpr size_t kFewestRows = 3;  // fewer would make pairs of unrelated text alike
constexpr double kFound = 0.95;    // share of the pairs at the threshold

size_t rows_for(double threshold, size_t most) {
  const auto found = [&](size_t rows) { return 1 - std::pow(1 - std::pow(threshold, static_cast<double>(rows)), double{kBands}); };
  size_t rows = most;
  while (rows > kFewestRows && found(rows) < kFound) --rows;
  return rows;
}

}  // namespace

MinHash::MinHash(double threshold) : rows_(rows_for(threshold, kMostRows)) {
  for (size_t row = 0; row < kMostRows; ++row)
    for (size_t b = 0; b < kBands; ++b) {
      const uint64_t factors = hash64_of(uint64_t{row * kBands + b});
      low_[row][b] = static_cast<uint32_t>(factors) | 1;
      high_[row][b] = static_cast<uint32_t>(factors >> 32) | 1;
    }
}

Bands MinHash::bands(std::span<const uint32_t> source, std::span<const uint32_t> target) const {
  std::vector<uint64_t> hashes;
  hashes.reserve(source.size() + target.size());
  for (const uint32_t shingle : source) hashes.push_back(hash64_of(uint64_t{shingle}));
  for (const uint32_t shingle : target) hashes.push_back(hash64_of(uint64_t{1} << 32 | shingle));
  std::array<std::array<uint32_t, kMostRows>, kBands> least{};
  for (size_t row = 0; row < rows_; ++row) {
    std::array<uint32_t, kBands> of_row;  // in registers of the processor
    of_row.fill(std::numeric_limits<uint32_t>::max());
    for (const uint64_t hash : hashes) {
      const auto low = static_cast<uint32_t>(hash), high = static_cast<uint32_t>(hash >> 32);
      for (size_t b = 0; b < kBands; ++b) of_row[b] = std::min(of_row[b], low * low_[row][b] + high * high_[row][b]);
    }
    for (size_t b = 0; b < kBands; ++b) least[b][row] = of_row[b];
  }
  Bands bands;
  for (size_t b = 0; b < kBands; ++b) bands[b] = static_cast<uint32_t>(hash64(std::as_bytes(std::span(least[b]).first(rows_)), b));
  return bands;
}

}  // namespace starling
