// Vectorised loops over rows, written once with the compiler's vector types and compiled for each instruction set (STARLING_ISA).
// f32 arithmetic throughout; bf16 is widened on load and rounded to nearest-even on store. Sums have a fixed order.
#include "backend/cpu/kernels/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/kernels/vectors.h"
#include "backend/dropout.h"

namespace starling::kernels::STARLING_ISA {
namespace {

constexpr int kMaxNV = L == 16 ? 4 : 2, kMaxMR = 6;

// A whole vector or the first n lanes: blocks(n, f) calls f(column, Full{} or Part{rest}) so that one body serves both.
struct Full {};
struct Part {
  int64_t n;
};
template <class T>
inline vf load(const T* p, Full) {
  return load(p);
}
template <class T>
inline vf load(const T* p, Part w) {
  return load(p, w.n);
}
template <class T>
inline void store(T* p, vf x, Full) {
  store(p, x);
}
template <class T>
inline void store(T* p, vf x, Part w) {
  store(p, x, w.n);
}
template <class F>
inline void blocks(int64_t begin, int64_t end, F f) {
  int64_t c = begin;
  for (; c + L <= end; c += L) f(c, Full{});
  if (c < end) f(c, Part{end - c});
}

typedef float f8 __attribute__((vector_size(32)));
typedef float f4 __attribute__((vector_size(16)));

// Halves are combined until one lane is left, in registers.
template <class Op>
inline float folded(f4 x, Op op) {
  const f4 pair = op(x, __builtin_shufflevector(x, x, 2, 3, 2, 3));
  return op(pair, __builtin_shufflevector(pair, pair, 1, 1, 1, 1))[0];
}
template <class Op>
inline float folded(f8 x, Op op) {
  return folded(op(__builtin_shufflevector(x, x, 0, 1, 2, 3), __builtin_shufflevector(x, x, 4, 5, 6, 7)), op);
}
#if defined(__AVX512F__)
template <class Op>
inline float folded(vf x, Op op) {
  return folded(op(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7), __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15)), op);
}
#endif
inline float sum(vf x) {
  return folded(x, [](auto a, auto b) { return a + b; });
}
inline float maximum(vf x) {
  return folded(x, [](auto a, auto b) { return a > b ? a : b; });
}
inline int64_t count(vi x) {
  int64_t n = 0;
  for (int i = 0; i < L; ++i) n += x[i];
  return n;
}
inline vf max(vf a, vf b) { return a > b ? a : b; }

// x = n ln 2 + r with |r| <= ln 2 / 2 (Cody-Waite); `power` is n in the place of a float's exponent.
inline vf reduce(vf x, vi& power) {
  const vf shifted = x * 1.44269504f + 12582912.0f;
  const vf n = shifted - 12582912.0f;
  power = ((vi)shifted - 0x4B400000) << 23;
  return (x - n * 0.693359375f) + n * 2.12194440e-4f;
}
// (e^r - 1) / r for |r| <= ln 2 / 2, relative error 3e-8: its Chebyshev series to degree 5.
inline vf growth(vf r) {
  vf p = r * 1.39411632e-3f + 8.36918689e-3f;
  p = p * r + 4.16663513e-2f;
  p = p * r + 0.166665047f;
  p = p * r + 0.5f;
  return p * r + 1.0f;
}

// e^x, relative error below 2e-7; inputs below -87 give about 1e-38.
inline vf exponential(vf x) {
  x = x < splat(-87.3f) ? splat(-87.3f) : x;
  x = x > splat(88.3f) ? splat(88.3f) : x;
  vi power;
  const vf r = reduce(x, power);
  return (vf)((vi)(growth(r) * r + 1.0f) + power);
}

// Absolute error below 2e-7.
inline vf sigmoid(vf x) { return 1.0f / (1.0f + exponential(-x)); }

// u / (u + 2) with u = e^2x - 1, which keeps its digits near zero; relative error below 4e-7.
inline vf hyperbolic_tangent(vf x) {
  x += x;
  x = x < splat(-20) ? splat(-20) : x;
  x = x > splat(20) ? splat(20) : x;
  vi power;
  const vf r = reduce(x, power), scale = (vf)((vi)splat(1) + power);
  const vf u = scale * (growth(r) * r) + (scale - 1.0f);
  return u / (u + 2.0f);
}

// -- dropout masks ---------------------------------------------------------------------------------------------------------

inline void multiply(uint32_t factor, vu x, vu& high, vu& low) {
#if defined(__AVX512F__)
  const __m512i a = (__m512i)x, f = _mm512_set1_epi32(static_cast<int>(factor));
  const __m512i even = _mm512_mul_epu32(a, f), odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), f);
  high = (vu)_mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd);
  low = (vu)_mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32));
#elif defined(__AVX2__)
  const __m256i a = (__m256i)x, f = _mm256_set1_epi32(static_cast<int>(factor));
  const __m256i even = _mm256_mul_epu32(a, f), odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), f);
  high = (vu)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
  low = (vu)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
#else
  const __m128i a = (__m128i)x, f = _mm_set1_epi32(static_cast<int>(factor));
  const __m128i even = _mm_mul_epu32(a, f), odd = _mm_mul_epu32(_mm_srli_epi64(a, 32), f);
  high = (vu)_mm_blend_epi16(_mm_srli_epi64(even, 32), odd, 0xCC);
  low = (vu)_mm_blend_epi16(even, _mm_slli_epi64(odd, 32), 0xCC);
#endif
}

// The 128 factors (0 or scale) of columns [128 * super, 128 * super + 128) of one row.
inline void mask_factors(const Mask& m, uint32_t sentence, uint32_t position, int64_t super, float* factors) {
  for (int part = 0; part < 16; part += L) {
    vu c0, c1 = splat_u(position), c2 = splat_u(sentence), c3 = splat_u(0);
    for (int i = 0; i < L; ++i) c0[i] = static_cast<uint32_t>(super * 16 + part + i);
    uint32_t k0 = static_cast<uint32_t>(m.key), k1 = static_cast<uint32_t>(m.key >> 32);
    for (int round = 0; round < kDropoutRounds; ++round) {
      vu h0, l0, h1, l1;
      multiply(0xD2511F53u, c0, h0, l0);
      multiply(0xCD9E8D57u, c2, h1, l1);
      c0 = h1 ^ c1 ^ k0, c1 = l1, c2 = h0 ^ c3 ^ k1, c3 = l0;
      k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    const vu words[4] = {c0, c1, c2, c3};
    for (int w = 0; w < 4; ++w) {
      store(factors + (2 * w) * 16 + part, (words[w] & 0xffffu) >= splat_u(m.threshold) ? splat(m.scale) : vf{});
      store(factors + (2 * w + 1) * 16 + part, (words[w] >> 16) >= splat_u(m.threshold) ? splat(m.scale) : vf{});
    }
  }
}

// The factors of a whole row of D columns; returns nullptr when there is no dropout.
struct RowMask {
  explicit RowMask(const Mask& mask) : m(mask) {}
  // Calls f(begin, end, factors or nullptr) for stretches of at most 128 columns of [begin, end).
  template <class F>
  void row(int64_t n, int64_t begin, int64_t end, F f) {
    if (m.threshold == 0) return f(begin, end, static_cast<const float*>(nullptr));
    for (int64_t super = begin / 128; super * 128 < end; ++super) {
      mask_factors(m, m.sentence[n], m.position[n], super, factors);
      const int64_t from = std::max(begin, super * 128), to = std::min(end, super * 128 + 128);
      f(from, to, static_cast<const float*>(factors + (from - super * 128)));
    }
  }
  const Mask& m;
  alignas(64) float factors[128 + L];
};

// -- embeddings ------------------------------------------------------------------------------------------------------------

template <class T>
void embed(const int32_t* tokens, const int32_t* positions, const float* table, const float* signal, float scale, const Mask& mask, void* y,
           int64_t D, int64_t begin, int64_t end) {
  RowMask masks(mask);
  for (int64_t n = begin; n < end; ++n) {
    T* out = static_cast<T*>(y) + n * D;
    if (tokens[n] < 0) {
      std::memset(out, 0, D * sizeof(T));
      continue;
    }
    const float* row = table + tokens[n] * D;
    const float* wave = positions ? signal + positions[n] * D : nullptr;
    masks.row(n, 0, D, [&](int64_t from, int64_t to, const float* factors) {
      blocks(from, to, [&](int64_t c, auto w) {
        vf x = load(row + c, w) * scale;
        if (wave) x += load(wave + c, w);
        if (factors) x *= load(factors + (c - from), w);
        store(out + c, x, w);
      });
    });
  }
}

template <class T>
void embed_backward(const int32_t* tokens, int64_t N, float scale, const Mask& mask, const void* dy, float* dtable, int64_t D,
                    int64_t begin, int64_t end) {
  RowMask masks(mask);
  for (int64_t n = 0; n < N; ++n) {
    if (tokens[n] < 0) continue;
    const T* g = static_cast<const T*>(dy) + n * D;
    float* row = dtable + tokens[n] * D;
    masks.row(n, begin, end, [&](int64_t from, int64_t to, const float* factors) {
      blocks(from, to, [&](int64_t c, auto w) {
        vf x = load(g + c, w) * scale;
        if (factors) x *= load(factors + (c - from), w);
        store(row + c, load(row + c, w) + x, w);
      });
    });
  }
}

// -- layer normalisation -----------------------------------------------------------------------------------------------------

template <class T>
void layer_norm(const void* x, const float* gamma, const float* beta, void* y, float* statistics, int64_t D, int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    const T* row = static_cast<const T*>(x) + n * D;
    T* out = static_cast<T*>(y) + n * D;
    vf total{};
    blocks(0, D, [&](int64_t c, auto w) { total += load(row + c, w); });
    const float mean = sum(total) / static_cast<float>(D);
    vf squares{};
    float rest = 0;
    for (int64_t c = 0; c < D; c += L) {
      if (c + L <= D) {
        const vf d = load(row + c) - mean;
        squares += d * d;
      } else {
        const vf d = load(row + c, D - c) - mean;
        for (int64_t i = 0; i < D - c; ++i) rest += d[i] * d[i];
      }
    }
    const float rstd = 1.0f / std::sqrt((sum(squares) + rest) / static_cast<float>(D) + 1e-5f);
    statistics[2 * n] = mean, statistics[2 * n + 1] = rstd;
    blocks(0, D, [&](int64_t c, auto w) { store(out + c, (load(row + c, w) - mean) * rstd * load(gamma + c, w) + load(beta + c, w), w); });
  }
}

template <class T>
void layer_norm_backward(const void* dy, const void* x, const float* gamma, const float* statistics, void* dx, bool accumulate,
                         float* dgamma_part, float* dbeta_part, int64_t D, int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    const T* g = static_cast<const T*>(dy) + n * D;
    const T* row = static_cast<const T*>(x) + n * D;
    T* out = static_cast<T*>(dx) + n * D;
    const float mean = statistics[2 * n], rstd = statistics[2 * n + 1];
    vf total{}, dots{};
    blocks(0, D, [&](int64_t c, auto w) {
      const vf d = load(g + c, w), h = (load(row + c, w) - mean) * rstd, weighted = d * load(gamma + c, w);
      total += weighted, dots += weighted * h;
      store(dgamma_part + c, load(dgamma_part + c, w) + d * h, w);
      store(dbeta_part + c, load(dbeta_part + c, w) + d, w);
    });
    const float mean_g = sum(total) / static_cast<float>(D), mean_gh = sum(dots) / static_cast<float>(D);
    blocks(0, D, [&](int64_t c, auto w) {
      const vf h = (load(row + c, w) - mean) * rstd;
      vf value = rstd * (load(g + c, w) * load(gamma + c, w) - mean_g - h * mean_gh);
      if (accumulate) value += load(out + c, w);
      store(out + c, value, w);
    });
  }
}

// -- element-wise -------------------------------------------------------------------------------------------------------------

template <class T>
void add_dropout(const void* x, const void* s, const Mask& mask, void* y, int64_t D, int64_t begin, int64_t end) {
  RowMask masks(mask);
  for (int64_t n = begin; n < end; ++n) {
    const T* base = x ? static_cast<const T*>(x) + n * D : nullptr;
    const T* branch = static_cast<const T*>(s) + n * D;
    T* out = static_cast<T*>(y) + n * D;
    masks.row(n, 0, D, [&](int64_t from, int64_t to, const float* factors) {
      blocks(from, to, [&](int64_t c, auto w) {
        vf value = load(branch + c, w);
        if (factors) value *= load(factors + (c - from), w);
        if (base) value += load(base + c, w);
        store(out + c, value, w);
      });
    });
  }
}

template <class T>
void relu_dropout_backward(const void* h, float scale, void* dh, int64_t begin, int64_t end) {
  const T* hidden = static_cast<const T*>(h);
  T* g = static_cast<T*>(dh);
  blocks(begin, end, [&](int64_t c, auto w) {
    const vf x = load(hidden + c, w);
    store(g + c, x > vf{} ? load(g + c, w) * scale : vf{}, w);
  });
}

template <class T>
void add(const void* x, void* y, int64_t begin, int64_t end) {
  const T* a = static_cast<const T*>(x);
  T* b = static_cast<T*>(y);
  blocks(begin, end, [&](int64_t c, auto w) { store(b + c, load(a + c, w) + load(b + c, w), w); });
}

template <class T>
int64_t clamp(const void* x, float bound, void* y, int64_t begin, int64_t end) {
  const T* in = static_cast<const T*>(x);
  T* out = static_cast<T*>(y);
  vi beyond{};
  blocks(begin, end, [&](int64_t c, auto w) {
    const vf v = load(in + c, w), low = v < splat(-bound) ? splat(-bound) : v;
    beyond -= (v < splat(-bound)) | (v > splat(bound));
    store(out + c, low > splat(bound) ? splat(bound) : low, w);
  });
  return count(beyond);
}

template <class T>
void clamp_backward(const void* x, float bound, const void* dy, void* dx, bool accumulate, int64_t begin, int64_t end) {
  const T* in = static_cast<const T*>(x);
  T* out = static_cast<T*>(dx);
  blocks(begin, end, [&](int64_t c, auto w) {
    const vf v = load(in + c, w);
    vf g = (v < splat(-bound)) | (v > splat(bound)) ? vf{} : load(static_cast<const T*>(dy) + c, w);
    if (accumulate) g += load(out + c, w);
    store(out + c, g, w);
  });
}

// Sums of columns [begin, end): blocks of 128 rows first, so that the rounding error grows slowly.
template <class T>
void column_sums(const void* dy, float* sums, int64_t N, int64_t Q, int64_t begin, int64_t end) {
  const T* g = static_cast<const T*>(dy);
  for (int64_t stripe = begin; stripe < end; stripe += 256) {
    const int64_t stop = std::min(end, stripe + 256);
    float total[256 + L] = {};
    for (int64_t block = 0; block < N; block += 128) {
      float part[256 + L] = {};
      const int64_t last = std::min(N, block + 128);
      int64_t n = block;
      for (; n + 4 <= last; n += 4)
        blocks(stripe, stop, [&](int64_t c, auto w) {
          const vf four =
              (load(g + n * Q + c, w) + load(g + (n + 1) * Q + c, w)) + (load(g + (n + 2) * Q + c, w) + load(g + (n + 3) * Q + c, w));
          store(part + (c - stripe), load(part + (c - stripe)) + four);
        });
      for (; n < last; ++n)
        blocks(stripe, stop, [&](int64_t c, auto w) { store(part + (c - stripe), load(part + (c - stripe)) + load(g + n * Q + c, w)); });
      for (int64_t c = 0; c < stop - stripe; c += L) store(total + c, load(total + c) + load(part + c));
    }
    blocks(stripe, stop, [&](int64_t c, auto w) { store(sums + c, load(sums + c, w) + load(total + (c - stripe)), w); });
  }
}

// -- recurrence ----------------------------------------------------------------------------------------------------------------

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
      i += load(z, w), f += load(z + H, w), g += load(z + 2 * H, w), o += load(z + 3 * H, w);
      before = load(static_cast<const Cell*>(t.cell_before) + r * H + c, w) * unit;
    }
    i = sigmoid(i), f = sigmoid(f), g = hyperbolic_tangent(g), o = sigmoid(o);
    vf cell = f * before + i * g;
    const vi low = cell<splat(-limit), high = cell> splat(limit);
    clipped -= low | high;
    cell = low ? splat(-limit) : cell;
    cell = high ? splat(limit) : cell;
    store(gates, i, w), store(gates + H, f, w), store(gates + 2 * H, g, w), store(gates + 3 * H, o, w);
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

// -- attention ------------------------------------------------------------------------------------------------------------------

// C [MR, NV * L] (+)= A [MR, k] B [k, NV * L]; A element (i, j) is at a[i * rs + j * cs].
template <int MR, int NV>
inline void tile(int64_t k, const float* a, int64_t rs, int64_t cs, const float* b, int64_t ldb, float* c, int64_t ldc) {
  vf acc[MR][NV] = {};
  for (int64_t j = 0; j < k; ++j) {
    vf row[NV];
    for (int v = 0; v < NV; ++v) row[v] = load(b + j * ldb + v * L);
    for (int i = 0; i < MR; ++i) {
      const float x = a[i * rs + j * cs];
      for (int v = 0; v < NV; ++v) acc[i][v] += x * row[v];
    }
  }
  for (int i = 0; i < MR; ++i)
    for (int v = 0; v < NV; ++v) store(c + i * ldc + v * L, acc[i][v]);
}

template <int NV>
void column_panel(int64_t m, int64_t k, const float* a, int64_t rs, int64_t cs, const float* b, int64_t ldb, float* c, int64_t ldc) {
  int64_t i = 0;
  for (; i + kMaxMR <= m; i += kMaxMR) tile<kMaxMR, NV>(k, a + i * rs, rs, cs, b, ldb, c + i * ldc, ldc);
  a += i * rs, c += i * ldc;
  switch (m - i) {
    case 5:
      return tile<5, NV>(k, a, rs, cs, b, ldb, c, ldc);
    case 4:
      return tile<4, NV>(k, a, rs, cs, b, ldb, c, ldc);
    case 3:
      return tile<3, NV>(k, a, rs, cs, b, ldb, c, ldc);
    case 2:
      return tile<2, NV>(k, a, rs, cs, b, ldb, c, ldc);
    case 1:
      return tile<1, NV>(k, a, rs, cs, b, ldb, c, ldc);
    default:
      return;
  }
}

// C [m, n] = A [m, k] B [k, n]; n is a multiple of L (buffers are padded).
void product(int64_t m, int64_t n, int64_t k, const float* a, int64_t rs, int64_t cs, const float* b, int64_t ldb, float* c, int64_t ldc) {
  int64_t j = 0;
  for (; j + kMaxNV * L <= n; j += kMaxNV * L) column_panel<kMaxNV>(m, k, a, rs, cs, b + j, ldb, c + j, ldc);
  if constexpr (kMaxNV > 2) {
    if (n - j == 3 * L) return column_panel<3>(m, k, a, rs, cs, b + j, ldb, c + j, ldc);
    if (n - j == 2 * L) return column_panel<2>(m, k, a, rs, cs, b + j, ldb, c + j, ldc);
  }
  if (n - j == L) column_panel<1>(m, k, a, rs, cs, b + j, ldb, c + j, ldc);
}

inline int64_t padded(int64_t n) { return (n + L - 1) / L * L; }

// L x L transposition by log2(L) rounds of interleaving row i with row i + L/2.
inline void transpose_block(vf* r) {
  vi low, high;
  for (int i = 0; i < L; ++i) low[i] = i / 2 + (i % 2) * L, high[i] = L / 2 + i / 2 + (i % 2) * L;
  for (int round = 1; round < L; round *= 2) {
    vf t[L];
    for (int i = 0; i < L / 2; ++i) {
      t[2 * i] = __builtin_shuffle(r[i], r[i + L / 2], low);
      t[2 * i + 1] = __builtin_shuffle(r[i], r[i + L / 2], high);
    }
    for (int i = 0; i < L; ++i) r[i] = t[i];
  }
}

// out [rows, width] f32 with row stride `ld` = padded(width), times scale; padding columns are zero.
template <class T>
void widen_rows(const void* in, int64_t stride, int64_t rows, int64_t width, float scale, float* out, int64_t ld) {
  for (int64_t r = 0; r < rows; ++r)
    blocks(0, width, [&](int64_t c, auto w) { store(out + r * ld + c, load(static_cast<const T*>(in) + r * stride + c, w) * scale); });
}

// out [width, padded(rows)] = in^T; padding columns are zero.
template <class T>
void widen_transposed(const void* in, int64_t stride, int64_t rows, int64_t width, float* out, int64_t ld) {
  for (int64_t r = 0; r < rows; r += L)
    blocks(0, width, [&](int64_t c, auto w) {
      vf block[L];
      for (int i = 0; i < L; ++i) block[i] = r + i < rows ? load(static_cast<const T*>(in) + (r + i) * stride + c, w) : vf{};
      transpose_block(block);
      const int64_t count = std::min<int64_t>(L, width - c);
      for (int i = 0; i < count; ++i) store(out + (c + i) * ld + r, block[i]);
    });
}

template <class T>
void narrow_rows(const float* in, int64_t ld, int64_t rows, int64_t width, float scale, void* out, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r)
    blocks(0, width, [&](int64_t c, auto w) { store(static_cast<T*>(out) + r * stride + c, load(in + r * ld + c) * scale, w); });
}

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

// In place: row[0, limit) becomes its softmax, row[limit, ld) zero, ld a multiple of L. Returns the log of the denominator.
inline float softmax_row(float* row, int64_t limit, int64_t ld) {
  for (int64_t j = limit; j < ld; ++j) row[j] = -1e30f;
  vf top = splat(-1e30f), total{};
  for (int64_t j = 0; j < ld; j += L) top = max(top, load(row + j));
  const float m = maximum(top);
  for (int64_t j = 0; j < ld; j += L) store(row + j, exponential(load(row + j) - m));
  for (int64_t j = limit; j < ld; ++j) row[j] = 0;
  for (int64_t j = 0; j < ld; j += L) total += load(row + j);
  const float denominator = sum(total), inverse = 1.0f / denominator;
  for (int64_t j = 0; j < ld; j += L) store(row + j, load(row + j) * inverse);
  return m + std::log(denominator);
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

// -- attention of recurrent models ----------------------------------------------------------------------------------------------

// The additive score rests on tanh(q + k) = 1 - 2 r with r = 1 / (1 + e^2q e^2k): the exponentials are taken once for each element of q and
// of k, and a pair of them costs a product and a division. e^2x is cut off at |x| = 43, far beyond where tanh is flat.

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
  x += 1.0f, y += 1.0f;
  x = x > splat(1e9f) ? splat(1e9f) : x;
  y = y > splat(1e9f) ? splat(1e9f) : y;
  const vf inverse = 1.0f / (x * y);
  rx = inverse * y, ry = inverse * x;
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
        s0 += load(v + c) * r0, s1 += load(v + c) * r1;
      }
      s[i * ld + j] = -2.0f * sum(s0), s[i * ld + other] = -2.0f * sum(other > j ? s1 : s0);
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

// -- output ----------------------------------------------------------------------------------------------------------------------

// With a bound the exponentials of clamped logits get a minus sign, by which the gradient's pass knows them.
template <class T, bool Bounded>
void smoothed_loss_row(const LossTask& t, int64_t V) {
  float* z = t.logits;
  const auto clamped = [&](vf x) {
    if constexpr (!Bounded) return x;
    const vf low = x < splat(-t.bound) ? splat(-t.bound) : x;
    return low > splat(t.bound) ? splat(t.bound) : low;
  };
  const auto marked = [&](vf x, vf e) {
    if constexpr (!Bounded) return e;
    return (x < splat(-t.bound)) | (x > splat(t.bound)) ? -e : e;
  };
  const int64_t whole = V / L * L;
  const vf last = clamped(load(z + whole, V - whole));
  vf top = splat(-INFINITY), total{}, exps{};
  for (int64_t c = 0; c < whole; c += L) {
    const vf x = clamped(load(z + c));
    top = max(top, x), total += x;
  }
  float m = maximum(top), sum_z = sum(total);
  for (int64_t i = 0; i < V - whole; ++i) m = std::max(m, last[i]), sum_z += last[i];
  const float at_target = Bounded ? std::clamp(z[t.target], -t.bound, t.bound) : z[t.target];
  for (int64_t c = 0; c < whole; c += L) {
    const vf x = load(z + c), e = exponential(clamped(x) - m);
    exps += e;
    store(z + c, marked(x, e));
  }
  float denominator = sum(exps);
  if (whole < V) {
    const vf e = exponential(last - m);
    for (int64_t i = 0; i < V - whole; ++i) denominator += e[i];
    store(z + whole, marked(load(z + whole, V - whole), e), V - whole);
  }
  const float log_sum = m + std::log(denominator), nll = log_sum - at_target;
  t.out[0] = (1 - t.smoothing) * nll + t.smoothing * (log_sum - sum_z / static_cast<float>(V));
  t.out[1] = nll;
  t.out[2] = at_target == m ? 1.0f : 0.0f;
  T* dz = static_cast<T*>(t.dlogits);
  if (!dz) return;
  const float scale = t.weight / denominator, uniform = t.weight * t.smoothing / static_cast<float>(V), at = z[t.target];
  blocks(0, V, [&](int64_t c, auto w) {
    const vf e = load(z + c, w), g = e * scale - uniform;
    if constexpr (Bounded)
      store(dz + c, e < vf{} ? vf{} : g, w);
    else
      store(dz + c, g, w);
  });
  const float exact = at < 0 ? 0.0f : at * scale - uniform - t.weight * (1 - t.smoothing);
  if constexpr (sizeof(T) == 2)
    dz[t.target] = round_to_bf16(exact);
  else
    dz[t.target] = exact;
}

template <class T>
void smoothed_loss(const LossTask& t, int64_t V) {
  if (t.target < 0) {
    t.out[0] = t.out[1] = t.out[2] = 0;
    if (t.dlogits) std::memset(t.dlogits, 0, V * sizeof(T));
  } else if (t.bound > 0) {
    smoothed_loss_row<T, true>(t, V);
  } else {
    smoothed_loss_row<T, false>(t, V);
  }
}

void log_softmax_top_k(const float* z, int64_t V, int64_t k, float* values, int32_t* indices) {
  vf top = splat(-INFINITY), exps{};
  for (int64_t c = 0; c + L <= V; c += L) top = max(top, load(z + c));
  float m = maximum(top);
  for (int64_t c = V / L * L; c < V; ++c) m = std::max(m, z[c]);
  for (int64_t c = 0; c + L <= V; c += L) exps += exponential(load(z + c) - m);
  float denominator = sum(exps);
  for (int64_t c = V / L * L; c < V; ++c) denominator += std::exp(z[c] - m);
  const float log_sum = m + std::log(denominator);
  int64_t found = 0;
  float least = -INFINITY;
  const auto consider = [&](int64_t c) {
    if (found == k && !(z[c] > least)) return;
    int64_t at = found < k ? found++ : k - 1;
    for (; at > 0 && z[indices[at - 1]] < z[c]; --at) indices[at] = indices[at - 1];
    indices[at] = static_cast<int32_t>(c);
    if (found == k) least = z[indices[k - 1]];
  };
  constexpr int64_t stride = 8 * L;
  int64_t c = 0;
  for (; c + stride <= V; c += stride) {
    if (found == k) {
      vf best = load(z + c);
      for (int64_t i = L; i < stride; i += L) best = max(best, load(z + c + i));
      if (!(maximum(best) > least)) continue;
    }
    for (int64_t i = 0; i < stride; ++i) consider(c + i);
  }
  for (; c < V; ++c) consider(c);
  for (int64_t i = 0; i < k; ++i) values[i] = z[indices[i]] - log_sum;
}

// The sums of up to 64 stretches of exponentials first, then a scan of the one stretch that the threshold lies in.
int32_t sample(const float* z, int64_t V, double uniform) {
  vf top = splat(-INFINITY);
  for (int64_t c = 0; c + L <= V; c += L) top = max(top, load(z + c));
  float m = maximum(top);
  for (int64_t c = V / L * L; c < V; ++c) m = std::max(m, z[c]);
  const int64_t stretch = std::max<int64_t>(256, (V / 64 / L + 1) * L);
  double sums[64], total = 0;
  for (int64_t begin = 0, i = 0; begin < V; begin += stretch, ++i) {
    const int64_t end = std::min(V, begin + stretch);
    vf exps{};
    int64_t c = begin;
    for (; c + L <= end; c += L) exps += exponential(load(z + c) - m);
    sums[i] = sum(exps);
    for (; c < end; ++c) sums[i] += std::exp(z[c] - m);
    total += sums[i];
  }
  const double threshold = uniform * total;
  double before = 0;
  int64_t begin = 0;
  for (int64_t i = 0; begin + stretch < V && before + sums[i] <= threshold; ++i) before += sums[i], begin += stretch;
  int32_t token = -1;
  // Rounding may leave the stretch a little short of the threshold: then its last possible token is taken, or the row's best.
  for (int64_t c = begin; c < std::min(V, begin + stretch) && before <= threshold; ++c) {
    const float p = std::exp(z[c] - m);
    if (p > 0) token = static_cast<int32_t>(c);
    before += p;
  }
  return token >= 0 ? token : static_cast<int32_t>(std::find(z, z + V, m) - z) % V;
}

// -- 8-bit products --------------------------------------------------------------------------------------------------------

typedef int8_t vb __attribute__((vector_size(L)));

// Within +-127, so that adding 1.5 * 2^23 rounds to nearest, ties to even.
inline vf rounded(vf x) {
  x = x > splat(127) ? splat(127) : x;
  x = x < splat(-127) ? splat(-127) : x;
  return x + 12582912.0f;
}
inline void store_rounded(float* q, vf x, Full) { store(q, rounded(x) - 12582912.0f); }
inline void store_rounded(float* q, vf x, Part w) { store(q, rounded(x) - 12582912.0f, w.n); }
inline void store_rounded(int8_t* q, vf x, Full) {
  const vb b = __builtin_convertvector((vi)rounded(x) - 0x4B400000, vb);
  std::memcpy(q, &b, sizeof b);
}
inline void store_rounded(int8_t* q, vf x, Part w) {
  const vb b = __builtin_convertvector((vi)rounded(x) - 0x4B400000, vb);
  std::memcpy(q, &b, w.n);
}

template <class T, class Q>
void quantize_rows(const T* x, float bound, Q* q, float* unit, int64_t D, int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    const T* row = x + n * D;
    float a = bound;
    if (bound == 0) {
      vi largest{};  // magnitudes compare as integers do, four times as fast
      blocks(0, D, [&](int64_t c, auto w) {
        const vi m = magnitude_bits(load(row + c, w));
        largest = m > largest ? m : largest;
      });
      a = maximum((vf)largest);
      if (a < 1e-30f) a = 0;  // 127 / a would overflow
    }
    const float factor = a > 0 ? 127 / a : 0.0f;
    vf nans{};  // 0, or NaN where the row has one: integers cannot carry it
    blocks(0, D, [&](int64_t c, auto w) {
      const vf v = load(row + c, w);
      nans += (vf)((v != v) & (vi)v);
      store_rounded(q + n * D + c, v * factor, w);
    });
    unit[n] = a / (127 * 127) + sum(nans);
  }
}
template <class T>
void quantize_rows(const void* x, float bound, void* q, bool integers, float* unit, int64_t D, int64_t begin, int64_t end) {
  if (integers)
    quantize_rows(static_cast<const T*>(x), bound, static_cast<int8_t*>(q), unit, D, begin, end);
  else
    quantize_rows(static_cast<const T*>(x), bound, static_cast<float*>(q), unit, D, begin, end);
}

struct Integers {
  const int32_t* p;
};
template <class W>
inline vf load(Integers sums, W w) {
  return __builtin_convertvector((vi)load(reinterpret_cast<const float*>(sums.p), w), vf);
}

// sums(c) gives a row's sums at column c.
template <class T, class S>
inline void scale_row(S sums, float unit, const float* scale, const float* bias, bool relu, bool accumulate, T* y, int64_t D) {
  blocks(0, D, [&](int64_t c, auto w) {
    vf v = load(sums(c), w) * unit * load(scale + c, w);
    if (bias) v += load(bias + c, w);
    if (relu) v = max(vf{}, v);  // NaN stays
    if (accumulate) v += load(y + c, w);
    store(y + c, v, w);
  });
}
template <class T>
void scale_products(const void* sums, bool integers, const float* unit, const float* scale, const float* bias, bool relu, bool accumulate,
                    void* y, bool wide, int64_t D, int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    const int64_t first = n * D;
    const auto whole = [&](int64_t c) { return Integers{static_cast<const int32_t*>(sums) + first + c}; };
    const auto floating = [&](int64_t c) { return static_cast<const float*>(sums) + first + c; };
    const auto row = [&](auto s) {
      if (wide)
        scale_row(s, unit[n], scale, bias, relu, accumulate, static_cast<float*>(y) + first, D);
      else
        scale_row(s, unit[n], scale, bias, relu, accumulate, static_cast<T*>(y) + first, D);
    };
    if (integers)
      row(whole);
    else
      row(floating);
  }
}

// -- flat buffers ------------------------------------------------------------------------------------------------------------------

double sum_of_squares(const float* x, int64_t begin, int64_t end) {
  double total = 0;
  for (int64_t block = begin; block < end; block += 4096) {
    vf squares{};
    blocks(block, std::min(end, block + 4096), [&](int64_t c, auto w) {
      const vf v = load(x + c, w);
      squares += v * v;
    });
    total += sum(squares);
  }
  return total;
}

void adam(float* value, const float* gradient, float* m, float* v, float rate, float beta1, float beta2, float epsilon, float coupled_decay,
          float decoupled_decay, float scale, float correction1, float correction2, int64_t begin, int64_t end) {
  const float step = rate / correction1, root = 1.0f / std::sqrt(correction2);
  blocks(begin, end, [&](int64_t c, auto w) {
    vf x = load(value + c, w);
    const vf g = load(gradient + c, w) * scale + coupled_decay * x;
    const vf first = beta1 * load(m + c, w) + (1 - beta1) * g, second = beta2 * load(v + c, w) + (1 - beta2) * g * g;
    vf deviation;
    for (int i = 0; i < L; ++i) deviation[i] = __builtin_sqrtf(second[i]);
    x = x - step * first / (deviation * root + epsilon) - rate * decoupled_decay * x;
    store(m + c, first, w), store(v + c, second, w), store(value + c, x, w);
  });
}

void adagrad(float* value, const float* gradient, float* v, float rate, float epsilon, float weight_decay, float scale, int64_t begin,
             int64_t end) {
  blocks(begin, end, [&](int64_t c, auto w) {
    const vf x = load(value + c, w), g = load(gradient + c, w) * scale + weight_decay * x, squares = load(v + c, w) + g * g;
    vf root;
    for (int i = 0; i < L; ++i) root[i] = __builtin_sqrtf(squares[i]);
    store(v + c, squares, w), store(value + c, x - rate * g / (root + epsilon), w);
  });
}

void sgd(float* value, const float* gradient, float rate, float weight_decay, float scale, int64_t begin, int64_t end) {
  blocks(begin, end, [&](int64_t c, auto w) {
    const vf x = load(value + c, w);
    store(value + c, x - rate * (scale * load(gradient + c, w) + weight_decay * x), w);
  });
}

void moving_average(const float* value, float* average, float decay, int64_t begin, int64_t end) {
  blocks(begin, end, [&](int64_t c, auto w) { store(average + c, decay * load(average + c, w) + (1 - decay) * load(value + c, w), w); });
}

template <class T>
constexpr Table make_table() {
  return {embed<T>,
          embed_backward<T>,
          layer_norm<T>,
          layer_norm_backward<T>,
          add_dropout<T>,
          relu_dropout_backward<T>,
          add<T>,
          clamp<T>,
          clamp_backward<T>,
          lstm_step<T>,
          lstm_step_backward<T>,
          column_sums<T>,
          quantize_rows<T>,
          scale_products<T>,
          attention_scratch,
          attention<T>,
          attention_backward<T>,
          attend_cached<T>,
          global_attention_scratch,
          global_attention<T>,
          global_attention_backward<T>,
          smoothed_loss<T>,
          log_softmax_top_k,
          sample,
          sum_of_squares,
          adam,
          adagrad,
          sgd,
          moving_average};
}

}  // namespace

const Table& table(DType activation) {
  static constexpr Table f32 = make_table<float>(), narrow = make_table<bf16>();
  return activation == DType::bf16 ? narrow : f32;
}

}  // namespace starling::kernels::STARLING_ISA
