// Partition of a flat buffer: the part that a collective leaves on each rank, and the part that each of several ranks owns.
#pragma once

#include <algorithm>

#include "base/error.h"
#include "base/range.h"

namespace starling {

// Returns part k of N of n elements. The parts are contiguous, in order and cover everything; boundaries are multiples of 16 elements, and
// parts may be empty.
inline Range part(int64_t n, int k, int N) {
  CHECK(N > 0 && k >= 0 && k < N, "part {} of {}", k, N);
  constexpr int64_t kBlock = 16;
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  const auto boundary = [&](int64_t i) { return std::min(n, blocks * i / N * kBlock); };
  return {boundary(k), boundary(k + 1)};
}

}  // namespace starling
