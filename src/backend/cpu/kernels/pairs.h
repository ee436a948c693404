// Products of bf16 with f32 sums by AVX512-BF16, whose instruction adds two products at once: both sides lie in pairs along the dimension
// that is summed. For the .cpp files of the kernels that are compiled for it.
#pragma once

#include "backend/cpu/kernels/vectors.h"

#if defined(__AVX512BF16__)

namespace starling::kernels::STARLING_ISA {
namespace {

constexpr int kPairRows = 6, kPairVectors = 4;  // of the largest tile: with a row of b and an element of a, all registers but three

// Elements c and c + 1 of a row, in all lanes.
inline __m512bh pair_at(const bf16* p) {
  int32_t two;
  std::memcpy(&two, p, sizeof two);
  return (__m512bh)_mm512_set1_epi32(two);
}
inline __m512bh pairs_at(const bf16* p) { return (__m512bh)_mm512_loadu_si512(p); }

// sums [Rows, Vectors * 16] += a [Rows, depth] b [depth, Vectors * 16], of pairs: that of row i and place j is at a[i * row + j * step],
// those of place j at b + j * ldb.
template <int Rows, int Vectors>
inline void add_pairs(__m512 (&sums)[Rows][Vectors], const bf16* a, int64_t row, int64_t step, const bf16* b, int64_t ldb, int64_t depth) {
  for (int64_t j = 0; j < depth; ++j) {
    __m512bh v[Vectors];
#pragma GCC unroll 4
    for (int i = 0; i < Vectors; ++i) v[i] = pairs_at(b + j * ldb + 32 * i);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const __m512bh x = pair_at(a + r * row + j * step);
#pragma GCC unroll 4
      for (int i = 0; i < Vectors; ++i) sums[r][i] = _mm512_dpbf16_ps(sums[r][i], x, v[i]);
    }
  }
}

// Two vectors of 32 numbers, side by side: out [64] = x0, y0, x1, y1, ...
inline void interleave(__m512i x, __m512i y, bf16* out) {
  // The halves of each 128 bits first, then these put in order.
  const __m512i low = _mm512_unpacklo_epi16(x, y), high = _mm512_unpackhi_epi16(x, y);
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  _mm512_storeu_si512(out, _mm512_permutex2var_epi64(low, first, high));
  _mm512_storeu_si512(out + 32, _mm512_permutex2var_epi64(low, second, high));
}

// The first n of 32 numbers, zeros behind them.
inline __m512i some_at(const bf16* p, int64_t n) {
  const __mmask32 mask = n >= 32 ? ~__mmask32{0} : n <= 0 ? 0 : (__mmask32{1} << n) - 1;
  return _mm512_maskz_loadu_epi16(mask, p);
}

// Pairs of rows: out [ceil(rows / 2), width rounded up to 32] of pairs, with `ld` numbers from row to row, which is at least twice that
// width. Zeros fill what is beyond the rows and the width.
inline void pair_rows(const bf16* x, int64_t stride, int64_t rows, int64_t width, bf16* out, int64_t ld) {
  for (int64_t r = 0; r < rows; r += 2, out += ld) {
    const bf16 *const even = x + r * stride, *const odd = even + stride;
    for (int64_t c = 0; c < width; c += 32)
      interleave(some_at(even + c, width - c), r + 1 < rows ? some_at(odd + c, width - c) : _mm512_setzero_si512(), out + 2 * c);
  }
}

// 16 x 16 of 32 bits.
inline void transpose_words(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
    r[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
    r[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
    r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
  }
}

// Pairs of columns: out [ceil(width / 2), rows rounded up to 16] of pairs, with `ld` numbers from row to row. Zeros fill what is beyond.
inline void pair_columns(const bf16* x, int64_t stride, int64_t rows, int64_t width, bf16* out, int64_t ld) {
  for (int64_t r = 0; r < rows; r += 16)
    for (int64_t c = 0; c < width; c += 32) {
      __m512i block[16];
      for (int i = 0; i < 16; ++i) block[i] = r + i < rows ? some_at(x + (r + i) * stride + c, width - c) : _mm512_setzero_si512();
      transpose_words(block);
      const int64_t pairs = width - c >= 32 ? 16 : (width - c + 1) / 2;
      for (int64_t i = 0; i < pairs; ++i) _mm512_storeu_si512(out + (c / 2 + i) * ld + 2 * r, block[i]);
    }
}

}  // namespace
}  // namespace starling::kernels::STARLING_ISA

#endif
