// What attention does to the scores of one query: what it may see, dropout, relative positions.
#pragma once

#include "backend/cpu/kernels/dropout_mask.h"

namespace starling::kernels::STARLING_ISA {
namespace {

inline int64_t visible(const AttentionTask& t, int64_t query) { return t.causal ? std::min(t.keys, query + 1) : t.keys; }

// Multiplies the probabilities of one query by its dropout factors.
inline void drop_row(const AttentionTask& t, int64_t query, int64_t limit, const float* p, float* out) {
  RowMask masks(t.mask);
  masks.row(query, 0, limit, [&](int64_t from, int64_t to, const float* factors) {
    blocks(from, to, [&](int64_t c, auto w) { store(out + c, load(p + c, w) * load(factors + (c - from), w), w); });
  });
}

// The same, and also the gradient of what was dropped.
inline void drop_both(const AttentionTask& t, int64_t query, int64_t limit, const float* p, float* dropped, float* gradient) {
  RowMask masks(t.mask);
  masks.row(query, 0, limit, [&](int64_t from, int64_t to, const float* factors) {
    blocks(from, to, [&](int64_t c, auto w) {
      const vf factor = load(factors + (c - from), w);
      store(dropped + c, load(p + c, w) * factor, w);
      store(gradient + c, load(gradient + c, w) * factor, w);
    });
  });
}

inline void put(float* p, float x) { *p = x; }
inline void put(bf16* p, float x) { store(p, splat(x), 1); }

// The keys of a query at `place` by bin, of `keys` keys: bin 0 has those before `near`, the last one those from `far` on, and each bin
// between them one key.
struct KeysOfBins {
  KeysOfBins(int64_t reach, int64_t place, int64_t keys)
      : shift(reach - place), near(std::clamp<int64_t>(place - reach + 1, 0, keys)), far(std::clamp<int64_t>(place + reach, near, keys)) {}
  int64_t shift;  // bin - key
  int64_t near, far;
};

// score[j * step] += scale * bins of key j, for j < keys.
inline void add_bins(const float* bins, int64_t reach, int64_t place, int64_t keys, float scale, float* score, int64_t step) {
  const KeysOfBins of(reach, place, keys);
  const float first = scale * bins[0], last = scale * bins[2 * reach];
  for (int64_t j = 0; j < of.near; ++j) score[j * step] += first;
  for (int64_t j = of.near; j < of.far; ++j) score[j * step] += scale * bins[j + of.shift];
  for (int64_t j = of.far; j < keys; ++j) score[j * step] += last;
}

// bins = scale * the sums by bin of x[j * step], for j < keys.
template <class T>
void sum_bins(const float* x, int64_t step, int64_t reach, int64_t place, int64_t keys, float scale, T* bins) {
  const KeysOfBins of(reach, place, keys);
  float first = 0, last = 0;
  for (int64_t j = 0; j < of.near; ++j) first += x[j * step];
  for (int64_t j = of.far; j < keys; ++j) last += x[j * step];
  put(bins, scale * first);
  for (int64_t b = 1; b < 2 * reach; ++b) {
    const int64_t j = b - of.shift;
    put(bins + b, j >= of.near && j < of.far ? scale * x[j * step] : 0);
  }
  put(bins + 2 * reach, scale * last);
}

}  // namespace
}  // namespace starling::kernels::STARLING_ISA
