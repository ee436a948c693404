// The largest k of a chunk: elements fall into groups, of lanes of neighbouring vectors; the k-th largest of the groups' maxima is at most
// the k-th largest element and not by much less, so few elements reach it, and the exact choice is made among those.
#include "backend/cpu/kernels/chunk.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace starling::kernels::STARLING_ISA {
namespace {

// Prefetches elements [i, i + 64) of the next chunk while this one is being processed; if that chunk is shorter, also what lies behind it.
inline void fetch_next(const Chunk& c, int64_t i) {
  for (const float* next : {c.next_x, c.next_residual})
    for (int64_t line = i; line < i + 64; line += 16)
      __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(next) + sizeof(float) * line), 1, 2);
}

int64_t count_at_least(const int32_t* x, int64_t n, int32_t least) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += L) count += std::popcount(at_least(load(x + i), least));
  return count;
}

// Returns a threshold > 0 that is reached by the k largest of n numbers and by at most `more` others or, if equal numbers prevent that, the
// k-th largest; 1 if fewer than k are nonzero. All numbers are at least low >= 0, 0 < k <= n, and zeros follow them up to a whole vector.
// It works bit by bit, since counting uses whole vectors and sorting does not.
int32_t threshold_of(const int32_t* x, int64_t n, int64_t k, int64_t more, int32_t low) {
  int32_t high = 0;
  for (int64_t i = 0; i < n; ++i) high |= x[i];
  auto bit = static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(low ^ high)));
  int32_t found = bit == 0 ? low : low & -bit & ~bit;  // the leading bits that all numbers share
  for (; bit > 0; bit >>= 1) {
    const int32_t least = found | bit;
    const int64_t reach = count_at_least(x, n, least);
    if (reach >= k) found = least;
    if (reach >= k && reach <= k + more) break;
  }
  return std::max(found, 1);
}

// The maxima of groups of G elements: of each lane of G vectors. Returns the number of groups.
template <int G>
int64_t maxima(Chunk& c) {
  int64_t groups = 0;
  for (int64_t i = 0; i < c.n; groups += L) {
    vi top{};
    const auto raise = [&](vi m) { top = m > top ? m : top; };
    const int64_t end = std::min(i + G * L, c.n);
    for (; i + L <= end; i += L) raise(magnitude_bits(load(c.a + i)));
    if (i < end) raise(magnitude_bits(load(c.a + i, end - i)));
    std::memcpy(c.top + groups, &top, sizeof top);
    i = end;
  }
  return groups;
}

}  // namespace

void choose(Chunk& c, int32_t threshold) {
  uint64_t reached[kChunk / 64], some = 0;  // a bit for each element, for each 64 elements
  float last[64] = {};
  int64_t n = 0;
  for (int64_t w = 0; 64 * w < c.n; ++w) {
    const float* a = c.a + 64 * w;
    if (64 * w + 64 > c.n) {
      std::copy_n(a, c.n - 64 * w, last);
      a = last;
    }
    reached[w] = 0;
    fetch_next(c, 64 * w);
    for (int i = 0; i < 64; i += L) reached[w] |= static_cast<uint64_t>(at_least(magnitude_bits(load(a + i)), threshold)) << i;
    some |= static_cast<uint64_t>(reached[w] != 0) << w;
  }
  for (; some != 0; some &= some - 1) {
    const int w = std::countr_zero(some);
    for (uint64_t bits = reached[w]; bits != 0; bits &= bits - 1) c.index[n++] = 64 * w + std::countr_zero(bits);
  }
  for (int64_t i = 0; i < n; ++i) c.magnitudes[i] = magnitude(c.a[c.index[i]]);
  std::fill_n(c.magnitudes + n, L, 0);
  c.entries = n;
}

void truncate(Chunk& c, int32_t threshold, int64_t ties) {
  int64_t n = 0;
  for (int64_t i = 0; i < c.entries; ++i) {
    const bool tie = c.magnitudes[i] == threshold, stays = (c.magnitudes[i] > threshold) | (tie & (ties > 0));
    ties -= tie;
    c.index[n] = c.index[i];
    n += stays;
  }
  c.entries = n;
}

void choose_largest(Chunk& c, int64_t k) {
  c.entries = 0;
  if (k == 0) return;
  int32_t least = 1;
  if (k <= 512) {
    const int64_t groups = k <= 96 ? maxima<16>(c) : maxima<4>(c);
    if (groups >= k) least = threshold_of(c.top, groups, k, k / 4, std::accumulate(c.top, c.top + groups, INT32_MAX, std::bit_and<>()));
  }
  choose(c, least);
  if (c.entries <= k) return;
  const int32_t threshold = threshold_of(c.magnitudes, c.entries, k, 0, least);
  truncate(c, threshold, k - count_at_least(c.magnitudes, c.entries, threshold + 1));
}

}  // namespace starling::kernels::STARLING_ISA
