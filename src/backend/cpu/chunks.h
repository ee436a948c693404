// Work cut into chunks that threads take as they become free.
#pragma once

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>

namespace starling {

// [0, total) cut at multiples of `unit` into nearly equal chunks, at most `most`.
struct Chunks {
  int64_t total, unit, count;
  Chunks(int64_t n, int64_t u, int64_t most) : total(n), unit(u), count(std::min((n + u - 1) / u, most)) {}
  int64_t begin(int64_t chunk) const { return std::min(total, (total + unit - 1) / unit * chunk / count * unit); }
  int64_t size(int64_t chunk) const { return begin(chunk + 1) - begin(chunk); }
};

// Calls f(chunk, thread) once for each chunk in [0, count), on at most `threads` threads, and throws what a call threw. Each thread begins
// with a share of its own, the same one whenever count is the same, since its cache holds what it wrote there; then it takes what is left
// of the others' shares. If another process keeps a thread from its core, the others do that thread's work and wait only for the chunk that
// it has begun.
template <class F>
void take_chunks(int threads, int64_t count, F f) {
  constexpr int kMostShares = 256;  // no more threads than this take part
  const int shares = static_cast<int>(std::min<int64_t>({threads, count, kMostShares}));
  if (shares <= 1) {
    for (int64_t chunk = 0; chunk < count; ++chunk) f(chunk, 0);
    return;
  }
  struct alignas(64) Next {  // chunk of a share; a line of the cache for each
    int64_t chunk;
  };
  std::array<Next, kMostShares> next;  // those in use are set below; to clear all 16 KiB would slow small ops
  const auto begin = [&](int share) { return count * share / shares; };
  for (int s = 0; s < shares; ++s) next[s].chunk = begin(s);
  std::exception_ptr thrown;
#pragma omp parallel num_threads(shares)
  {
    const int thread = omp_get_thread_num();
    try {
      for (int i = 0; i < shares; ++i) {
        const int share = (thread + i) % shares;
        const int64_t end = begin(share + 1);
        const std::atomic_ref<int64_t> left(next[share].chunk);
        for (int64_t chunk; (chunk = left.fetch_add(1, std::memory_order_relaxed)) < end;) f(chunk, thread);
      }
    } catch (...) {
#pragma omp critical(starling_chunks)
      if (!thrown) thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace starling
