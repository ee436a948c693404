// Pairs of bf16 for AVX512-BF16, whose instruction adds two products at once: both sides of a product lie in pairs along the dimension that
// is summed.
#pragma once

#include "backend/cpu/kernels/arithmetic.h"

#if defined(__AVX512BF16__)

namespace starling::kernels::STARLING_ISA {
namespace {

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
