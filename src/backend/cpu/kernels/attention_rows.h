// What attention does to the scores of one query: what it may see, dropout, relative positions, gradients; and which rows it asks for.
#pragma once

#include "backend/cpu/kernels/dropout_mask.h"

namespace starling::kernels::STARLING_ISA {
namespace {

// The keys that queries before `end` see.
inline int64_t seen_before(const AttentionTask& t, int64_t end) { return t.causal ? std::min(t.keys, end) : t.keys; }
inline int64_t visible(const AttentionTask& t, int64_t query) { return seen_before(t, query + 1); }

// Multiplies the probabilities of one query by its dropout factors, in whole vectors: from `limit` on the probabilities
// are zeros. The mask's first column is 0, so that its stretches begin at whole vectors.
inline void drop_row(const AttentionTask& t, int64_t query, int64_t limit, float* p) {
  RowMask masks(t.mask);
  masks.row(query, 0, limit, [&](int64_t from, int64_t to, const float* factors) {
    for (int64_t c = from; c < to; c += L) store(p + c, load(p + c) * load(factors + (c - from)));
  });
}

// Writes them to `dropped`, and multiplies also the gradient of what was dropped.
inline void drop_both(const AttentionTask& t, int64_t query, int64_t limit, const float* p, float* dropped, float* gradient) {
  RowMask masks(t.mask);
  masks.row(query, 0, limit, [&](int64_t from, int64_t to, const float* factors) {
    for (int64_t c = from; c < to; c += L) {
      const vf factor = load(factors + (c - from));
      store(dropped + c, load(p + c) * factor);
      store(gradient + c, load(gradient + c) * factor);
    }
  });
}

template <class T>
inline void prefetch_row(const void* first, int64_t row, int64_t stride, int64_t width) {
  for (int64_t c = 0; c < width; c += 64 / sizeof(T)) prefetch(static_cast<const T*>(first) + row * stride + c);
}

// Asks, while the scores of one query are computed, for rows that this task will write and the next one reads: a few lines at a time, of
// strides that processors do not foresee. All at once would wait for memory, as reading them does; a single query asks for all.
template <class T>
inline void prefetch_rows(const AttentionTask& t, int64_t query) {
  const auto keys_and_values = [&](const void* k, const void* v, int64_t stride, int64_t keys) {  // this query's share
    for (int64_t key = query; key < keys; key += t.queries) {
      prefetch_row<T>(k, key, stride, t.head_width);
      prefetch_row<T>(v, key, stride, t.head_width);
    }
  };
  if (t.dq) {
    prefetch_row<T>(t.dq, query, t.ld_dq, t.head_width);
    keys_and_values(t.dk, t.dv, t.ld_dkv, t.keys);
  } else {
    prefetch_row<T>(t.y, query, t.ldy, t.head_width);
  }
  if (query < t.next.queries) {
    prefetch_row<T>(t.next.q, query, t.ldq, t.head_width);
    if (t.next.dy) prefetch_row<T>(t.next.dy, query, t.ldy, t.head_width);
  }
  keys_and_values(t.next.k, t.next.v, t.ldkv, t.next.keys);
}

// In place, of one query: p [keys] are scores and become probabilities, `gradient` [keys], of these after dropout, becomes that of the
// scores; `dropped` [keys] gets the probabilities after dropout, and is p where there is none. All have zeros from `limit` to `ld`, a
// multiple of L.
inline void score_gradients(const AttentionTask& t, int64_t query, int64_t limit, int64_t ld, float* p, float* dropped, float* gradient) {
  const float lse = t.lse[query * t.lse_stride];
  int64_t end = 0;
  for (; end < limit; end += L) {
    store(p + end, first_of(exponential(load(p + end) - lse), limit - end, 0));
    store(gradient + end, first_of(load(gradient + end), limit - end, 0));
  }
  for (int64_t j = end; j < ld; j += L) store(p + j, vf{}), store(dropped + j, vf{}), store(gradient + j, vf{});
  if (t.mask.threshold) drop_both(t, query, limit, p, dropped, gradient);
  vf dots{};
  for (int64_t j = 0; j < end; j += L) dots += load(p + j) * load(gradient + j);
  const float dot = sum(dots);
  for (int64_t j = 0; j < end; j += L) store(gradient + j, load(p + j) * (load(gradient + j) - dot));
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
