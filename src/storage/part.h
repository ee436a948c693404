// Parts of a flat buffer: what a collective leaves on each rank, and what each of several owns.
#pragma once

#include <algorithm>

#include "base/error.h"
#include "base/range.h"

namespace starling {

// Part k of N of n elements: contiguous, in order, nothing left over, boundaries at multiples of 16 elements; parts may be empty.
inline Range part(int64_t n, int k, int N) {
  CHECK(N > 0 && k >= 0 && k < N, "part {} of {}", k, N);
  constexpr int64_t kBlock = 16;
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  const auto boundary = [&](int64_t i) { return std::min(n, blocks * i / N * kBlock); };
  return {boundary(k), boundary(k + 1)};
}

}  // namespace starling
