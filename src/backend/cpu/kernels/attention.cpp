// Attention of one sentence and head in f32, and of one query over cached keys.
#include "backend/cpu/kernels/attention_rows.h"
#include "backend/cpu/kernels/small_products.h"
#include "backend/cpu/kernels/table_parts.h"

namespace starling::kernels::STARLING_ISA {
namespace {

int64_t attention_scratch(int64_t queries, int64_t keys, int64_t head_width) {
  const int64_t d = padded(head_width), k = padded(keys), t = padded(queries);
  return 3 * queries * d + 4 * keys * d + 2 * head_width * k + 3 * queries * k + t + 8 * L;
}

// Calls f(first, rows) for all rows at once, or where the task is causal a tile at a time: f leaves out what none of these rows sees.
// Masked probabilities are zeros, so this changes no bit.
template <class F>
void each_tile(const AttentionTask& t, int64_t rows, F f) {
  if (!t.causal) return f(0, rows);
  for (int64_t i = 0; i < rows; i += kTileRows) f(i, std::min<int64_t>(kTileRows, rows - i));
}

template <class T>
void attention(const AttentionTask& t, float* scratch) {
  const int64_t d = padded(t.head_width), kp = padded(t.keys);
  float* q = scratch;
  float* kt = q + t.queries * d;
  float* v = kt + t.head_width * kp;
  float* s = v + t.keys * d;
  float* out = s + t.queries * kp;
  widen_rows<T>(t.q, t.ldq, t.queries, t.head_width, t.scale, q, d);
  widen_transposed<T>(t.k, t.ldkv, t.keys, t.head_width, kt, kp);
  widen_rows<T>(t.v, t.ldkv, t.keys, t.head_width, 1.0f, v, d);
  each_tile(t, t.queries, [&](int64_t i, int64_t rows) {
    product(rows, padded(seen_before(t, i + rows)), t.head_width, q + i * d, d, 1, kt, kp, s + i * kp, kp);
  });
  for (int64_t i = 0; i < t.queries; ++i) {
    prefetch_rows<T>(t, i);
    float* row = s + i * kp;
    const int64_t limit = visible(t, i);
    const RelativeTask& r = t.relative;
    if (r.reach > 0) add_bins(r.scores + i * r.stride, r.reach, i, limit, t.scale, row, 1);
    t.lse[i * t.lse_stride] = softmax_row(row, limit, kp);
    if (t.mask.threshold) drop_row(t, i, limit, row);
    if (r.reach > 0) sum_bins(row, 1, r.reach, i, limit, 1.0f, static_cast<T*>(r.mass) + i * r.stride);
  }
  each_tile(t, t.queries,
            [&](int64_t i, int64_t rows) { product(rows, d, seen_before(t, i + rows), s + i * kp, kp, 1, v, d, out + i * d, d); });
  narrow_rows<T>(out, d, t.queries, t.head_width, 1.0f, t.y, t.ldy);
}

template <class T>
void attention_backward(const AttentionTask& t, float* scratch) {
  const int64_t d = padded(t.head_width), kp = padded(t.keys);
  float* q = scratch;                    // [queries, d], scaled
  float* dy = q + t.queries * d;         // [queries, d]
  float* result = dy + t.queries * d;    // dq [queries, d]
  float* k = result + t.queries * d;     // [keys, d]
  float* dk = k + t.keys * d;            // [keys, d]
  float* dv = dk + t.keys * d;           // [keys, d]
  float* kt = dv + t.keys * d;           // [width, kp]
  float* vt = kt + t.head_width * kp;    // [width, kp]
  float* p = vt + t.head_width * kp;     // [queries, kp] probabilities
  float* dropped = p + t.queries * kp;   // [queries, kp] probabilities after dropout
  float* ds = dropped + t.queries * kp;  // [queries, kp]
  widen_rows<T>(t.q, t.ldq, t.queries, t.head_width, t.scale, q, d);
  widen_rows<T>(t.dy, t.ldy, t.queries, t.head_width, 1.0f, dy, d);
  widen_rows<T>(t.k, t.ldkv, t.keys, t.head_width, 1.0f, k, d);
  widen_transposed<T>(t.k, t.ldkv, t.keys, t.head_width, kt, kp);
  widen_transposed<T>(t.v, t.ldkv, t.keys, t.head_width, vt, kp);
  each_tile(t, t.queries, [&](int64_t i, int64_t rows) {
    const int64_t columns = padded(seen_before(t, i + rows));
    product(rows, columns, t.head_width, q + i * d, d, 1, kt, kp, p + i * kp, kp);
    product(rows, columns, t.head_width, dy + i * d, d, 1, vt, kp, ds + i * kp, kp);
  });
  const bool drops = t.mask.threshold != 0;
  if (!drops) dropped = p;
  for (int64_t i = 0; i < t.queries; ++i) {
    prefetch_rows<T>(t, i);
    float* row = p + i * kp;
    float* grad = ds + i * kp;
    const int64_t limit = visible(t, i);
    const RelativeTask& r = t.relative;
    if (r.reach > 0) {
      add_bins(r.scores + i * r.stride, r.reach, i, limit, t.scale, row, 1);
      add_bins(r.dmass + i * r.stride, r.reach, i, limit, 1.0f, grad, 1);
    }
    score_gradients(t, i, limit, kp, row, dropped + i * kp, grad);
    if (r.reach > 0) sum_bins(grad, 1, r.reach, i, limit, t.scale, static_cast<T*>(r.dscores) + i * r.stride);
  }
  each_tile(t, t.queries,
            [&](int64_t i, int64_t rows) { product(rows, d, seen_before(t, i + rows), ds + i * kp, kp, 1, k, d, result + i * d, d); });
  each_tile(t, t.keys, [&](int64_t j, int64_t rows) {  // whose queries begin at the first of these keys
    const int64_t first = t.causal ? std::min(j, t.queries) : 0, queries = t.queries - first;
    product(rows, d, queries, ds + first * kp + j, 1, kp, q + first * d, d, dk + j * d, d);  // q carries the scale
    product(rows, d, queries, dropped + first * kp + j, 1, kp, dy + first * d, d, dv + j * d, d);
  });
  narrow_rows<T>(result, d, t.queries, t.head_width, t.scale, t.dq, t.ld_dq);
  narrow_rows<T>(dk, d, t.keys, t.head_width, 1.0f, t.dk, t.ld_dkv);
  narrow_rows<T>(dv, d, t.keys, t.head_width, 1.0f, t.dv, t.ld_dkv);
}

// The lane sums of each of L vectors. Two vectors are interleaved and added, so each sum has the order of halves.
inline vf lane_sums(const vf* x) {
  vi low, high;
  for (int i = 0; i < L; ++i) {
    low[i] = i / 2 + (i % 2) * L;
    high[i] = L / 2 + i / 2 + (i % 2) * L;
  }
  vf t[L];
  for (int i = 0; i < L; ++i) t[i] = x[i];
#pragma GCC unroll 4
  for (int n = L / 2; n >= 1; n /= 2)
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) t[i] = __builtin_shuffle(t[i], t[i + n], low) + __builtin_shuffle(t[i], t[i + n], high);
  return t[0];
}

// Each lane becomes op over the lanes at distances that are multiples of `step`, a power of 2.
template <class Op>
inline vf folded_by(vf x, int64_t step, Op op) {
  for (; step < L; step *= 2) {
    vi from;
    for (int i = 0; i < L; ++i) from[i] = static_cast<int32_t>((i + step) % L);
    x = op(x, __builtin_shuffle(x, from));
  }
  return x;
}

// The task of decoding: one row's query, and its keys and values, which are rows of a table.
template <class T>
struct CachedRows : CachedTask {
  explicit CachedRows(const CachedTask& t)
      : CachedTask(t), query(static_cast<const T*>(t.q)), keys(static_cast<const T*>(t.k)), values(static_cast<const T*>(t.v)) {}
  const T *query, *keys, *values;
};

// score [length, heads] = e^(what it has + scaled products of the query with the keys - the head's largest), in whole vectors, and share
// [heads] = 1 over their sums by head. For head counts at which a vector holds the scores of one or more whole keys: then no lane is idle,
// and each head has a fixed place in a vector.
template <class T>
void vector_scores(const CachedRows<T>& in, float* score, float* share) {
  const int64_t heads = in.heads, keys = L / heads, width = heads * in.head_width;
  const float scale = 1.0f / std::sqrt(static_cast<float>(in.head_width));
  vi lane;
  for (int i = 0; i < L; ++i) lane[i] = i;
  const T* query[L];
  for (int64_t i = 0, slot = 0; i < keys; ++i)
    for (int64_t h = 0; h < heads; ++h) query[slot++] = in.query + h * in.head_width;
  vf top = splat(-1e30f);
  for (int64_t first = 0; first < in.length; first += keys) {
    const T* key[L];
    for (int64_t i = 0, slot = 0; i < keys; ++i) {
      const int64_t row = in.index[std::min(first + i, in.length - 1)] * in.ldkv;
      for (int64_t h = 0; h < heads; ++h) key[slot++] = in.keys + row + h * in.head_width;
      if (first + i >= in.next_length) continue;
      const int64_t next = in.next[first + i] * in.ldkv;
      for (int64_t c = 0; c < width; c += 64 / static_cast<int64_t>(sizeof(T))) {
        prefetch(in.keys + next + c);  // the first level is full of this row's
        prefetch(in.values + next + c);
      }
    }
    vf dot[L] = {};
    for (int64_t c = 0; c < in.head_width; c += L)
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) dot[i] += load(query[i] + c) * load(key[i] + c);
    vf scores = load(score + first * heads) + lane_sums(dot) * scale;
    scores = lane < static_cast<int32_t>((in.length - first) * heads) ? scores : splat(-1e30f);
    top = max(top, scores);
    store(score + first * heads, scores);
  }
  top = folded_by(top, heads, [](vf a, vf b) { return max(a, b); });
  vf total{};
  for (int64_t i = 0; i < in.length * heads; i += L) {
    const vf e = exponential(load(score + i) - top);
    store(score + i, e);
    total += e;
  }
  total = folded_by(total, heads, [](vf a, vf b) { return a + b; });
  const vf shares = 1.0f / total;
  for (int64_t h = 0; h < heads; ++h) share[h] = shares[h];
}

// The same, number by number.
template <class T>
void scalar_scores(const CachedRows<T>& in, float* score, float* share) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(in.head_width));
  for (int64_t h = 0; h < in.heads; ++h) {
    float top = -1e30f, total = 0;
    for (int64_t j = 0; j < in.length; ++j) {
      vf dot{};
      blocks(h * in.head_width, (h + 1) * in.head_width,
             [&](int64_t c, auto w) { dot += load(in.query + c, w) * load(in.keys + in.index[j] * in.ldkv + c, w); });
      top = std::max(top, score[j * in.heads + h] += sum(dot) * scale);
    }
    for (int64_t j = 0; j < in.length; ++j) {
      float& s = score[j * in.heads + h];
      total += s = exponential(splat(s - top))[0];
    }
    share[h] = 1.0f / total;
  }
}

// Columns [first, first + N L) of y = share of each head times the sum of values by score; vectors do not cross heads. Several are computed
// at once, since a single one would wait for its own additions. `head`: that of the first column, at the end that of the column behind the
// last.
template <int N, class T>
void mixed_values(const CachedRows<T>& in, const float* score, const float* share, int64_t first, int64_t& head, T* y) {
  const float *weight[N], *shares[N];
  for (int v = 0; v < N; ++v) {
    weight[v] = score + head;
    shares[v] = share + head;
    if (first + (v + 1) * L == (head + 1) * in.head_width) ++head;
  }
  vf sums[N] = {};
  for (int64_t j = 0; j < in.length; ++j) {
    const T* row = in.values + in.index[j] * in.ldkv + first;
#pragma GCC unroll 16
    for (int v = 0; v < N; ++v) sums[v] += weight[v][j * in.heads] * load(row + v * L);
  }
#pragma GCC unroll 16
  for (int v = 0; v < N; ++v) store(y + first + v * L, sums[v] * *shares[v]);
}

template <class T>
void attend_cached(const CachedTask& t, float* scratch) {
  const CachedRows<T> in(t);
  const int64_t width = t.heads * t.head_width, last = t.length - 1;  // the query's place
  float *const score = scratch, *const share = scratch + padded(t.length * t.heads);
  std::fill(score, share, 0.0f);
  const RelativeTask& r = t.relative;
  const int64_t bins = 2 * r.reach + 1;
  if (r.reach > 0)
    for (int64_t h = 0; h < t.heads; ++h)
      add_bins(r.scores + h * bins, r.reach, last, t.length, 1.0f / std::sqrt(static_cast<float>(t.head_width)), score + h, t.heads);
  const bool whole = t.head_width % L == 0;  // vectors do not cross heads
  (whole && L % t.heads == 0 ? vector_scores<T> : scalar_scores<T>)(in, score, share);
  if (r.reach > 0)
    for (int64_t h = 0; h < t.heads; ++h)
      sum_bins(score + h, t.heads, r.reach, last, t.length, share[h], static_cast<T*>(r.mass) + h * bins);
  if (t.weights)
    for (int64_t j = 0; j < t.length; ++j) {
      float total = 0;
      for (int64_t h = 0; h < t.heads; ++h) total += score[j * t.heads + h] * share[h];
      t.weights[j] = total / static_cast<float>(t.heads);
    }
  T* const out = static_cast<T*>(t.y);
  if (whole) {
    int64_t c = 0, head = 0;
    for (; c + 8 * L <= width; c += 8 * L) mixed_values<8>(in, score, share, c, head, out);
    for (; c < width; c += L) mixed_values<1>(in, score, share, c, head, out);
    return;
  }
  for (int64_t h = 0; h < t.heads; ++h)
    blocks(h * t.head_width, (h + 1) * t.head_width, [&](int64_t column, auto w) {
      vf value{};
      for (int64_t j = 0; j < t.length; ++j) value += score[j * t.heads + h] * load(in.values + t.index[j] * t.ldkv + column, w);
      store(out + column, value * share[h], w);
    });
}

}  // namespace

template <class T>
void set_attention(Table& t) {
  t.attention = {attention_scratch, attention<T>, attention_backward<T>};
  t.attend_cached = attend_cached<T>;
}
template void set_attention<float>(Table&);
template void set_attention<bf16>(Table&);

}  // namespace starling::kernels::STARLING_ISA
