// A seeded pseudo-random permutation of 0..n-1 that is computed, not stored: shuffling a billion sentences takes no memory.
// It is a Feistel network over the smallest power of two that is at least n, with cycle walking: values outside 0..n-1 are encrypted
// again until one falls inside (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002; fewer than two encryptions on average).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace starling {

class Permutation {
 public:
  /// The permutation of [0, n) that belongs to (seed, stream, epoch); n > 0.
  Permutation(uint64_t n, uint64_t seed, uint32_t stream, uint64_t epoch) : n_(n) {
    CHECK(n > 0 && n < uint64_t{1} << 62, "n = {}", n);
    const int bits = std::max(2, static_cast<int>(std::bit_width(n - 1)));
    low_bits_ = bits / 2;
    high_bits_ = bits - low_bits_;
    for (uint32_t round = 0; round < keys_.size(); ++round) {
      const PhiloxBlock block = philox(seed, {static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32), stream, round});
      keys_[round] = (uint64_t{block[1]} << 32) | block[0];
    }
  }

  uint64_t size() const { return n_; }

  /// Returns the image of `index`, 0 <= index < n.
  uint64_t operator()(uint64_t index) const {
    do {
      index = encrypt(index);
    } while (index >= n_);
    return index;
  }

 private:
  static uint64_t mix(uint64_t x) {  // the finaliser of SplitMix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  // Each round adds a keyed function of the low half to the high half and swaps the halves; the number of rounds is even, so
  // that halves of unequal widths end where they began.
  uint64_t encrypt(uint64_t x) const {
    int low = low_bits_, high = high_bits_;
    for (const uint64_t key : keys_) {
      const uint64_t right = x & ((uint64_t{1} << low) - 1);
      const uint64_t left = ((x >> low) ^ mix(right + key)) & ((uint64_t{1} << high) - 1);
      x = (right << high) | left;
      std::swap(low, high);
    }
    return x;
  }

  uint64_t n_;
  int low_bits_, high_bits_;
  std::array<uint64_t, 8> keys_;
};

}  // namespace starling
