// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// A number is a pure function of (key, counter), so any order of evaluation and any number of threads or ranks give the same draws.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace starling {

using PhiloxBlock = std::array<uint32_t, 4>;

// Returns one block of four 32-bit words for a 128-bit counter under a 64-bit key.
inline PhiloxBlock philox(uint64_t key, PhiloxBlock counter) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

// A sequential view of one Philox stream, for shuffling, sampling and initialisation.
class Random {
 public:
  Random(uint64_t seed, uint64_t stream) : key_(seed), stream_(stream) {}

  uint64_t next() {
    if (used_ == 2) {
      block_ = philox(key_, {static_cast<uint32_t>(index_), static_cast<uint32_t>(index_ >> 32), static_cast<uint32_t>(stream_),
                             static_cast<uint32_t>(stream_ >> 32)});
      ++index_;
      used_ = 0;
    }
    const int at = 2 * used_++;
    return (uint64_t{block_[at + 1]} << 32) | block_[at];
  }
  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // Uniform integer in [0, n); n > 0. Multiply-shift: the bias is below n / 2^64.
  uint64_t below(uint64_t n) { return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64); }
  // Standard normal (Box-Muller).
  double normal() {
    const double u = 1.0 - uniform(), v = uniform();
    return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
  }

 private:
  uint64_t key_, stream_, index_ = 0;
  PhiloxBlock block_{};
  int used_ = 2;
};

}  // namespace starling
