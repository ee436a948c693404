// What comes before and after a product of 8-bit integers.
#include <cstring>

#include "backend/cpu/kernels/arithmetic.h"
#include "backend/cpu/kernels/table_parts.h"

namespace starling::kernels::STARLING_ISA {
namespace {

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

}  // namespace

template <class T>
void set_int8(Table& t) {
  t.quantize_rows = quantize_rows<T>;
  t.scale_products = scale_products<T>;
}
template void set_int8<float>(Table&);
template void set_int8<bf16>(Table&);

}  // namespace starling::kernels::STARLING_ISA
