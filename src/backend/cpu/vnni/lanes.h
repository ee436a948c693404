// What the 8-bit products have in common: masked vectors of f32 or bf16, and the final step from 16 sums to results. Only for files that
// are compiled for AVX-512; everything is internal to them.
#pragma once

#include <immintrin.h>

#include "backend/cpu/vnni/int8_product.h"

namespace starling::vnni {
namespace {

inline __m512 widened(__m256i narrow) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow), 16)); }
// Rounds to nearest, ties to even; a NaN need not stay one.
inline __m256i narrowed(__m512 x) {
  const __m512i u = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd), 16));
}

inline __mmask16 lanes(int64_t n) { return n >= 16 ? __mmask16(0xffff) : n <= 0 ? __mmask16(0) : __mmask16((1u << n) - 1); }

template <bool Narrow>
inline __m512 load(const void* p, int64_t at, __mmask16 mask) {
  if constexpr (Narrow) return widened(_mm256_maskz_loadu_epi16(mask, static_cast<const uint16_t*>(p) + at));
  return _mm512_maskz_loadu_ps(mask, static_cast<const float*>(p) + at);
}
template <bool Narrow>
inline void store(void* p, int64_t at, __m512 x, __mmask16 mask) {
  if constexpr (Narrow)
    _mm256_mask_storeu_epi16(static_cast<uint16_t*>(p) + at, mask, narrowed(x));
  else
    _mm512_mask_storeu_ps(static_cast<float*>(p) + at, mask, x);
}

// 16 outputs from `column` on.
struct Columns {
  int64_t first;
  __mmask16 mask;
  __m512 scale, bias;
  Columns(const Weight& w, const Output& out, int64_t column)
      : first(column),
        mask(lanes(w.out - column)),
        scale(_mm512_loadu_ps(w.scales + column)),
        bias(out.bias ? _mm512_maskz_loadu_ps(mask, out.bias + column) : _mm512_setzero_ps()) {}
};

// Turns a row's sums of these outputs, offsets included, into results.
template <bool Narrow>
inline void finish(__m512i sums, float unit, const Columns& c, const Output& out, int64_t row) {
  __m512 y = _mm512_mul_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_set1_ps(unit)), c.scale);
  y = _mm512_add_ps(y, c.bias);
  if (out.relu) y = _mm512_max_ps(_mm512_setzero_ps(), y);  // NaN stays
  const int64_t at = row * out.columns + c.first;
  if (out.accumulate) y = _mm512_add_ps(y, load<Narrow>(out.y, at, c.mask));
  store<Narrow>(out.y, at, y, c.mask);
}

}  // namespace
}  // namespace starling::vnni
