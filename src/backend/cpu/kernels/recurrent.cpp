// Steps of LSTM layers, and global attention of one sentence.
//
// The additive score rests on tanh(q + k) = 1 - 2 r with r = 1 / (1 + e^2q e^2k): the exponentials are taken once for each element of q and
// of k, and a pair of them costs a product and a division. e^2x is cut off at |x| = 43, far beyond where tanh is flat.
#include <cstring>

#include "backend/cpu/kernels/small_products.h"
#include "backend/cpu/kernels/table_parts.h"

namespace starling::kernels::STARLING_ISA {
namespace {

// Calls f(row, column, w) for the elements [begin, end) of a matrix of the given width.
template <class F>
inline void row_blocks(int64_t width, int64_t begin, int64_t end, F f) {
  for (int64_t at = begin; at < end;) {
    const int64_t row = at / width, from = at % width, to = std::min(width, from + end - at);
    blocks(from, to, [&](int64_t c, auto w) { f(row, c, w); });
    at += to - from;
  }
}

// Cells are stored in units of `unit`.
template <class T, class Cell>
int64_t lstm_elements(const LstmTask& t, float unit, int64_t begin, int64_t end) {
  const int64_t H = t.width;
  const float limit = t.bound > 0 ? t.bound : INFINITY, per_unit = 1.0f / unit;
  vi clipped{};
  row_blocks(H, begin, end, [&](int64_t r, int64_t c, auto w) {
    T* gates = static_cast<T*>(t.gates) + r * 4 * H + c;
    vf i = load(gates, w), f = load(gates + H, w), g = load(gates + 2 * H, w), o = load(gates + 3 * H, w), before{};
    if (r < t.past) {
      const float* z = t.recurrent + r * 4 * H + c;
      i += load(z, w);
      f += load(z + H, w);
      g += load(z + 2 * H, w);
      o += load(z + 3 * H, w);
      before = load(static_cast<const Cell*>(t.cell_before) + r * H + c, w) * unit;
    }
    i = sigmoid(i);
    f = sigmoid(f);
    g = hyperbolic_tangent(g);
    o = sigmoid(o);
    vf cell = f * before + i * g;
    const vi low = cell<splat(-limit), high = cell> splat(limit);
    clipped -= low | high;
    cell = low ? splat(-limit) : cell;
    cell = high ? splat(limit) : cell;
    store(gates, i, w);
    store(gates + H, f, w);
    store(gates + 2 * H, g, w);
    store(gates + 3 * H, o, w);
    store(static_cast<Cell*>(t.cell) + r * H + c, cell * per_unit, w);
    store(static_cast<T*>(t.hidden) + r * H + c, o * (t.tanh_output ? hyperbolic_tangent(cell) : cell), w);
  });
  return count(clipped);
}

template <class T>
int64_t lstm_step(const LstmTask& t, int64_t begin, int64_t end) {
  if (t.narrow_cell) return lstm_elements<T, int16_t>(t, t.bound / 32767.0f, begin, end);
  return lstm_elements<T, float>(t, 1.0f, begin, end);
}

template <class T>
void lstm_step_backward(const LstmBackwardTask& t, int64_t begin, int64_t end) {
  const int64_t H = t.width;
  const float limit = t.bound > 0 ? t.bound : INFINITY;
  row_blocks(H, begin, end, [&](int64_t r, int64_t c, auto w) {
    T* gates = static_cast<T*>(t.gates) + r * 4 * H + c;
    const int64_t at = r * H + c;
    const vf i = load(gates, w), f = load(gates + H, w), g = load(gates + 2 * H, w), o = load(gates + 3 * H, w);
    const vf cell = load(t.cell + at, w), before = r < t.past ? load(t.cell_before + at, w) : vf{};
    const vf squashed = t.tanh_output ? hyperbolic_tangent(cell) : cell, slope = t.tanh_output ? 1.0f - squashed * squashed : splat(1);
    vf dh = load(static_cast<const T*>(t.dhidden) + at, w);
    if (r < t.next) dh += load(t.drecurrent + at, w);
    vf dc = dh * o * slope;
    if (r < t.next) dc += load(t.dcell + at, w);
    dc = (cell >= splat(limit)) | (cell <= splat(-limit)) ? vf{} : dc;
    store(gates, dc * g * i * (1.0f - i), w);
    store(gates + H, dc * before * f * (1.0f - f), w);
    store(gates + 2 * H, dc * i * (1.0f - g * g), w);
    store(gates + 3 * H, dh * squashed * o * (1.0f - o), w);
    store(t.dcell + at, dc * f, w);
  });
}

template <class T>
void ssru(const SsruTask& t) {
  const int64_t H = t.width;
  const float* before = t.before;
  for (int64_t n = 0; n < t.rows; ++n) {
    float* const cell = t.cell + n * H;
    blocks(0, H, [&](int64_t c, auto w) {
      const int64_t at = n * H + c;
      const vf f = sigmoid(load(static_cast<const T*>(t.forget) + at, w)), x = load(static_cast<const T*>(t.candidate) + at, w);
      const vf value = f * (before ? load(before + c, w) : vf{}) + (1.0f - f) * x;
      store(cell + c, value, w);
      store(static_cast<T*>(t.hidden) + at, value > vf{} ? value : vf{}, w);
    });
    before = cell;
  }
}

template <class T>
void ssru_backward(const SsruTask& t, float* scratch) {
  const int64_t H = t.width;
  std::memset(scratch, 0, static_cast<size_t>(H) * sizeof(float));
  for (int64_t n = t.rows - 1; n >= 0; --n)
    blocks(0, H, [&](int64_t c, auto w) {
      const int64_t at = n * H + c;
      const vf f = sigmoid(load(static_cast<const T*>(t.forget) + at, w)), x = load(static_cast<const T*>(t.candidate) + at, w);
      const vf before = n > 0 ? load(t.cell + at - H, w) : vf{};
      vf dcell = load(scratch + c, w);
      dcell += load(t.cell + at, w) > vf{} ? load(static_cast<const T*>(t.dhidden) + at, w) : vf{};
      store(static_cast<T*>(t.dcandidate) + at, dcell * (1.0f - f), w);
      store(static_cast<T*>(t.dforget) + at, dcell * (before - x) * f * (1.0f - f), w);
      store(scratch + c, dcell * f, w);
    });
}

int64_t global_attention_scratch(int64_t queries, int64_t keys, int64_t width, int64_t values) {
  const int64_t a = padded(width), d = padded(values), k = padded(keys), rows = queries + keys;
  return queries * k + rows * d + (values + width) * k + 2 * (rows + 1) * a + 8 * L;
}

// out [rows, ld] = e^2x, one in the padding.
template <class T>
void raise_rows(const void* in, int64_t rows, int64_t width, float* out, int64_t ld) {
  for (int64_t r = 0; r < rows; ++r)
    blocks(0, width,
           [&](int64_t c, auto w) { store(out + r * ld + c, exponential(2.0f * load(static_cast<const T*>(in) + r * width + c, w))); });
}

// 1 / (1 + x) and 1 / (1 + y) by one division; beyond 1e9, where tanh is one, the terms are cut off, so that their product exists.
inline void inverses(vf x, vf y, vf& rx, vf& ry) {
  x += 1.0f;
  y += 1.0f;
  x = x > splat(1e9f) ? splat(1e9f) : x;
  y = y > splat(1e9f) ? splat(1e9f) : y;
  const vf inverse = 1.0f / (x * y);
  rx = inverse * y;
  ry = inverse * x;
}

// s [queries, ld] = v . tanh(q + k), less the sum of v, which no softmax sees.
template <class T>
void additive_scores(const GlobalAttentionTask& t, float* s, int64_t ld, float* scratch) {
  const int64_t a = padded(t.width);
  float* q = scratch;
  float* k = q + t.queries * a;
  float* v = k + t.keys * a;
  raise_rows<T>(t.q, t.queries, t.width, q, a);
  raise_rows<T>(t.k, t.keys, t.width, k, a);
  widen_rows<float>(t.v, 0, 1, t.width, 1.0f, v, a);
  for (int64_t i = 0; i < t.queries; ++i)
    for (int64_t j = 0; j < t.keys; j += 2) {
      const int64_t other = std::min(j + 1, t.keys - 1);
      const float* query = q + i * a;
      const float* first = k + j * a;
      const float* second = k + other * a;
      vf s0{}, s1{};
      for (int64_t c = 0; c < a; c += L) {
        vf r0, r1;
        inverses(load(query + c) * load(first + c), load(query + c) * load(second + c), r0, r1);
        s0 += load(v + c) * r0;
        s1 += load(v + c) * r1;
      }
      s[i * ld + j] = -2.0f * sum(s0);
      s[i * ld + other] = -2.0f * sum(other > j ? s1 : s0);
    }
}

// s [queries, ld] = q . k / sqrt(A).
template <class T>
void dot_scores(const GlobalAttentionTask& t, float* s, int64_t ld, float* scratch) {
  const int64_t a = padded(t.width);
  float* q = scratch;
  float* kt = q + t.queries * a;
  widen_rows<T>(t.q, t.width, t.queries, t.width, 1.0f / std::sqrt(static_cast<float>(t.width)), q, a);
  widen_transposed<T>(t.k, t.width, t.keys, t.width, kt, ld);
  product(t.queries, ld, t.width, q, a, 1, kt, ld, s, ld);
}

template <class T>
void global_attention(const GlobalAttentionTask& t, float* scratch) {
  const int64_t d = padded(t.values), kp = padded(t.keys);
  float* s = scratch;                  // [queries, kp]
  float* memory = s + t.queries * kp;  // [keys, d]
  float* out = memory + t.keys * d;    // [queries, d]
  float* rest = out + t.queries * d;
  if (t.v)
    additive_scores<T>(t, s, kp, rest);
  else
    dot_scores<T>(t, s, kp, rest);
  for (int64_t i = 0; i < t.queries; ++i) {
    softmax_row(s + i * kp, t.keys, kp);
    std::memcpy(t.weights + i * t.keys, s + i * kp, t.keys * sizeof(float));
  }
  widen_rows<T>(t.memory, t.values, t.keys, t.values, 1.0f, memory, d);
  product(t.queries, d, t.keys, s, kp, 1, memory, d, out, d);
  narrow_rows<T>(out, d, t.queries, t.values, 1.0f, t.y, t.values);
}

// dq, dk and dv from ds [queries, ld], the gradient of the scores.
template <class T>
void additive_scores_backward(const GlobalAttentionTask& t, const float* ds, int64_t ld, float* scratch) {
  const int64_t a = padded(t.width);
  float* q = scratch;
  float* k = q + t.queries * a;
  float* dq = k + t.keys * a;
  float* dk = dq + t.queries * a;
  float* v = dk + t.keys * a;
  float* dv = v + a;
  raise_rows<T>(t.q, t.queries, t.width, q, a);
  raise_rows<T>(t.k, t.keys, t.width, k, a);
  widen_rows<float>(t.v, 0, 1, t.width, 4.0f, v, a);  // 1 - tanh^2 = 4 r (1 - r)
  std::memset(dq, 0, t.queries * a * sizeof(float));
  std::memset(dk, 0, t.keys * a * sizeof(float));
  std::memset(dv, 0, a * sizeof(float));
  float total = 0;
  for (int64_t i = 0; i < t.queries; ++i)
    for (int64_t j = 0; j < t.keys; j += 2) {
      const int64_t other = std::min(j + 1, t.keys - 1);
      const float g0 = ds[i * ld + j], g1 = other > j ? ds[i * ld + other] : 0.0f;
      total += g0 + g1;
      for (int64_t c = 0; c < a; c += L) {
        const vf query = load(q + i * a + c);
        vf r0, r1;
        inverses(query * load(k + j * a + c), query * load(k + other * a + c), r0, r1);
        const vf h0 = g0 * r0, h1 = g1 * r1, w0 = h0 - h0 * r0, w1 = h1 - h1 * r1;
        store(dv + c, load(dv + c) + (h0 + h1));
        store(dq + i * a + c, load(dq + i * a + c) + (w0 + w1));
        store(dk + j * a + c, load(dk + j * a + c) + w0);
        store(dk + other * a + c, load(dk + other * a + c) + w1);
      }
    }
  for (int64_t r = 0; r < t.queries + t.keys; ++r)  // dk follows dq
    for (int64_t c = 0; c < a; c += L) store(dq + r * a + c, load(dq + r * a + c) * load(v + c));
  narrow_rows<T>(dq, a, t.queries, t.width, 1.0f, t.dq, t.width);
  narrow_rows<T>(dk, a, t.keys, t.width, 1.0f, t.dk, t.width);
  blocks(0, t.width, [&](int64_t c, auto w) { store(t.dv + c, total - 2.0f * load(dv + c), w); });
}

template <class T>
void dot_scores_backward(const GlobalAttentionTask& t, const float* ds, int64_t ld, float* scratch) {
  const int64_t a = padded(t.width);
  const float scale = 1.0f / std::sqrt(static_cast<float>(t.width));
  float* q = scratch;
  float* k = q + t.queries * a;
  float* dq = k + t.keys * a;
  float* dk = dq + t.queries * a;
  widen_rows<T>(t.q, t.width, t.queries, t.width, scale, q, a);
  widen_rows<T>(t.k, t.width, t.keys, t.width, scale, k, a);
  product(t.queries, a, t.keys, ds, ld, 1, k, a, dq, a);
  product(t.keys, a, t.queries, ds, 1, ld, q, a, dk, a);
  narrow_rows<T>(dq, a, t.queries, t.width, 1.0f, t.dq, t.width);
  narrow_rows<T>(dk, a, t.keys, t.width, 1.0f, t.dk, t.width);
}

template <class T>
void global_attention_backward(const GlobalAttentionTask& t, float* scratch) {
  const int64_t d = padded(t.values), kp = padded(t.keys);
  float* ds = scratch;                     // [queries, kp]
  float* dy = ds + t.queries * kp;         // [queries, d]
  float* dmemory = dy + t.queries * d;     // [keys, d]
  float* memory_t = dmemory + t.keys * d;  // [values, kp]
  widen_rows<T>(t.dy, t.values, t.queries, t.values, 1.0f, dy, d);
  widen_transposed<T>(t.memory, t.values, t.keys, t.values, memory_t, kp);
  product(t.queries, kp, t.values, dy, d, 1, memory_t, kp, ds, kp);
  for (int64_t i = 0; i < t.queries; ++i) {
    const float* p = t.weights + i * t.keys;
    if (t.dweights) {
      const float* dp = t.dweights + i * t.keys;
      blocks(0, t.keys, [&](int64_t j, auto w) { store(ds + i * kp + j, load(ds + i * kp + j) + load(dp + j, w)); });
    }
    vf dots{};
    blocks(0, t.keys, [&](int64_t j, auto w) { dots += load(p + j, w) * load(ds + i * kp + j); });
    const float dot = sum(dots);
    blocks(0, t.keys, [&](int64_t j, auto w) { store(ds + i * kp + j, load(p + j, w) * (load(ds + i * kp + j) - dot)); });
  }
  product(t.keys, d, t.queries, t.weights, 1, t.keys, dy, d, dmemory, d);
  if (t.accumulate)
    for (int64_t j = 0; j < t.keys; ++j) {
      const T* before = static_cast<const T*>(t.dmemory) + j * t.values;
      blocks(0, t.values, [&](int64_t c, auto w) { store(dmemory + j * d + c, load(dmemory + j * d + c) + load(before + c, w)); });
    }
  narrow_rows<T>(dmemory, d, t.keys, t.values, 1.0f, t.dmemory, t.values);
  float* rest = memory_t + t.values * kp;
  if (t.v)
    additive_scores_backward<T>(t, ds, kp, rest);
  else
    dot_scores_backward<T>(t, ds, kp, rest);
}

}  // namespace

template <class T>
void set_recurrent(Table& t) {
  t.lstm_step = lstm_step<T>, t.lstm_step_backward = lstm_step_backward<T>, t.ssru = ssru<T>, t.ssru_backward = ssru_backward<T>,
  t.global_attention_scratch = global_attention_scratch, t.global_attention = global_attention<T>,
  t.global_attention_backward = global_attention_backward<T>;
}
template void set_recurrent<float>(Table&);
template void set_recurrent<bf16>(Table&);

}  // namespace starling::kernels::STARLING_ISA
