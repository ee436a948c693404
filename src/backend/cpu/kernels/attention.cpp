// Attention of one sentence and head in f32, and of one query over cached keys.
#include <cstring>

#include "backend/cpu/kernels/dropout_mask.h"
#include "backend/cpu/kernels/small_products.h"
#include "backend/cpu/kernels/table_parts.h"

namespace starling::kernels::STARLING_ISA {
namespace {

int64_t attention_scratch(int64_t queries, int64_t keys, int64_t head_width) {
  const int64_t d = padded(head_width), k = padded(keys), t = padded(queries);
  return 3 * queries * d + 4 * keys * d + 2 * head_width * k + 3 * queries * k + t + 8 * L;
}

inline int64_t visible(const AttentionTask& t, int64_t query) { return t.causal ? std::min(t.keys, query + 1) : t.keys; }

// Multiplies the probabilities of one query by its dropout factors.
inline void drop_row(const AttentionTask& t, int64_t query, int64_t limit, const float* p, float* out) {
  RowMask masks(t.mask);
  masks.row(query, 0, limit, [&](int64_t from, int64_t to, const float* factors) {
    blocks(from, to, [&](int64_t c, auto w) { store(out + c, load(p + c, w) * load(factors + (c - from), w), w); });
  });
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
  product(t.queries, kp, t.head_width, q, d, 1, kt, kp, s, kp);
  for (int64_t i = 0; i < t.queries; ++i) {
    float* row = s + i * kp;
    const int64_t limit = visible(t, i);
    t.lse[i * t.lse_stride] = softmax_row(row, limit, kp);
    if (t.mask.threshold) drop_row(t, i, limit, row, row);
  }
  product(t.queries, d, t.keys, s, kp, 1, v, d, out, d);
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
  product(t.queries, kp, t.head_width, q, d, 1, kt, kp, p, kp);
  product(t.queries, kp, t.head_width, dy, d, 1, vt, kp, ds, kp);
  const bool drops = t.mask.threshold != 0;
  if (!drops) dropped = p;
  for (int64_t i = 0; i < t.queries; ++i) {
    float* row = p + i * kp;
    float* grad = ds + i * kp;
    const int64_t limit = visible(t, i);
    const float lse = t.lse[i * t.lse_stride];
    for (int64_t j = 0; j < kp; j += L) store(row + j, exponential(load(row + j) - lse));
    for (int64_t j = limit; j < kp; ++j) row[j] = 0, grad[j] = 0;
    if (drops) {
      std::memset(dropped + i * kp + limit, 0, (kp - limit) * sizeof(float));
      drop_row(t, i, limit, row, dropped + i * kp);
      drop_row(t, i, limit, grad, grad);
    }
    vf dots{};
    for (int64_t j = 0; j < kp; j += L) dots += load(row + j) * load(grad + j);
    const float dot = sum(dots);
    for (int64_t j = 0; j < kp; j += L) store(grad + j, load(row + j) * (load(grad + j) - dot));
  }
  product(t.queries, d, t.keys, ds, kp, 1, k, d, result, d);
  product(t.keys, d, t.queries, ds, 1, kp, q, d, dk, d);  // q carries the scale
  product(t.keys, d, t.queries, dropped, 1, kp, dy, d, dv, d);
  narrow_rows<T>(result, d, t.queries, t.head_width, t.scale, t.dq, t.ld_dq);
  narrow_rows<T>(dk, d, t.keys, t.head_width, 1.0f, t.dk, t.ld_dkv);
  narrow_rows<T>(dv, d, t.keys, t.head_width, 1.0f, t.dv, t.ld_dkv);
}

template <class T>
void attend_cached(const void* q, const void* kv, int64_t ldkv, int64_t k_column, int64_t v_column, const int32_t* index, int64_t length,
                   int64_t head_width, int64_t heads, void* y, float* weights, float* scratch) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_width));
  const T* cache = static_cast<const T*>(kv);
  // All heads of a key together: its row is read from end to end, and the row of values is called for meanwhile.
  for (int64_t j = 0; j < length; ++j) {
    const T* row = cache + index[j] * ldkv;
    for (int64_t h = 0; h < heads; ++h) {
      const T *query = static_cast<const T*>(q) + h * head_width, *key = row + k_column + h * head_width;
      for (int64_t c = 0; c < head_width; c += 64 / static_cast<int64_t>(sizeof(T)))
        __builtin_prefetch(row + v_column + h * head_width + c);
      vf dot{};
      blocks(0, head_width, [&](int64_t c, auto w) { dot += load(query + c, w) * load(key + c, w); });
      scratch[h * length + j] = sum(dot) * scale;
    }
  }
  for (int64_t h = 0; h < heads; ++h) {
    float* score = scratch + h * length;
    const float top = *std::max_element(score, score + length);
    vf total{};
    blocks(0, length, [&](int64_t j, auto w) { store(score + j, exponential(load(score + j, w) - top), w); });
    blocks(0, length, [&](int64_t j, auto w) { total += load(score + j, w); });
    const float inverse = 1.0f / sum(total), share = inverse / static_cast<float>(heads);
    if (weights)
      blocks(0, length,
             [&](int64_t j, auto w) { store(weights + j, load(score + j, w) * share + (h > 0 ? load(weights + j, w) : vf{}), w); });
    // Several vectors of columns at once: one alone would wait for its own additions.
    T* out = static_cast<T*>(y) + h * head_width;
    const T* values = cache + v_column + h * head_width;
    int64_t first = 0;
    for (; first + 4 * L <= head_width; first += 4 * L) {
      vf value[4] = {};
      for (int64_t j = 0; j < length; ++j)
        for (int i = 0; i < 4; ++i) value[i] += score[j] * load(values + index[j] * ldkv + first + i * L);
      for (int i = 0; i < 4; ++i) store(out + first + i * L, value[i] * inverse);
    }
    blocks(first, head_width, [&](int64_t c, auto w) {
      vf value{};
      for (int64_t j = 0; j < length; ++j) value += score[j] * load(values + index[j] * ldkv + c, w);
      store(out + c, value * inverse, w);
    });
  }
}

}  // namespace

template <class T>
void set_attention(Table& t) {
  t.attention_scratch = attention_scratch, t.attention = attention<T>, t.attention_backward = attention_backward<T>,
  t.attend_cached = attend_cached<T>;
}
template void set_attention<float>(Table&);
template void set_attention<bf16>(Table&);

}  // namespace starling::kernels::STARLING_ISA
