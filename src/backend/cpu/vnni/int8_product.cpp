// Compiled for AVX512-VNNI (cmake/kernels.cmake), so it must not call the standard library: the linker could give a function compiled for
// these instructions to code that runs on processors without them.
#include "backend/cpu/vnni/lanes.h"

namespace starling::vnni {
namespace {

constexpr int64_t kTiledRows = 8;  // from which on tiles are faster
constexpr int kRows = 6;           // of a tile: 24 sums, 4 weights and an input are all 32 registers but three

template <bool Narrow>
void quantize_rows(const void* x, float bound, uint8_t* q, float* unit, int64_t in, int64_t begin, int64_t end) {
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff), most = _mm512_set1_epi32(127), least = _mm512_set1_epi32(-127);
  for (int64_t r = begin; r < end; ++r) {
    const int64_t first = r * in;
    uint8_t* out = q + r * padded_in(in);
    float a = bound;
    __m512i largest = _mm512_setzero_si512();  // of magnitudes, which compare as integers do; that of NaN is above all numbers'
    for (int64_t c = 0; c < in; c += 16)
      largest = _mm512_max_epi32(largest, _mm512_and_si512(_mm512_castps_si512(load<Narrow>(x, first + c, lanes(in - c))), magnitude));
    const int32_t top = _mm512_reduce_max_epi32(largest);
    if (bound == 0) {
      a = __builtin_bit_cast(float, top);
      if (!(a >= 1e-30f)) a = 0;  // 127 / a would overflow
    }
    const __m512 factor = _mm512_set1_ps(a > 0 ? 127 / a : 0.0f), limit = _mm512_set1_ps(127);
    for (int64_t c = 0; c < padded_in(in); c += 16) {
      // Clamped before the conversion to an integer, which larger numbers would overflow.
      __m512 v = _mm512_mul_ps(load<Narrow>(x, first + c, lanes(in - c)), factor);
      v = _mm512_max_ps(_mm512_min_ps(v, limit), _mm512_sub_ps(_mm512_setzero_ps(), limit));
      const __m512i rounded = _mm512_max_epi32(_mm512_min_epi32(_mm512_cvtps_epi32(v), most), least);
      _mm_mask_storeu_epi8(out + c, lanes(padded_in(in) - c), _mm_xor_si128(_mm512_cvtepi32_epi8(rounded), _mm_set1_epi8(-128)));
    }
    unit[r] = top > 0x7f800000 ? __builtin_nanf("") : a / (127 * 127);
  }
}

// Rows of q times a panel.
template <int Rows, bool Narrow>
void tile(const uint8_t* q, const float* unit, const Weight& w, const Output& out, int64_t panel, int64_t row) {
  const int64_t depth = padded_in(w.in) / kDepth, stride = depth * kDepth, first = panel * kPanel;
  const int8_t* weights = w.panels + first * stride;
  __m512i sums[Rows][4];
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sums[r][i] = _mm512_loadu_si512(w.offsets + first + 16 * i);
  for (int64_t k = 0; k < depth; ++k) {
    __m512i v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) v[i] = _mm512_loadu_si512(weights + 256 * k + 64 * i);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      int32_t four;
      __builtin_memcpy(&four, q + r * stride + kDepth * k, 4);
      const __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) sums[r][i] = _mm512_dpbusd_epi32(sums[r][i], x, v[i]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    if (first + 16 * i >= w.out) return;
    const Columns c(w, out, first + 16 * i);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) finish<Narrow>(sums[r][i], unit[r], c, out, row + r);
  }
}

template <bool Narrow>
void multiply_panels(const uint8_t* q, const float* unit, int64_t rows, const Weight& w, const Output& out, int64_t begin, int64_t end) {
  const int64_t stride = padded_in(w.in);
  for (int64_t p = begin; p < end; ++p)
    for (int64_t r = 0; r < rows;) {
      const uint8_t* x = q + r * stride;
      const int64_t left = rows - r;
      // 7 rows are 4 and 3, not 6 and 1: a tile of one row waits for its own sums.
      if (left >= 12 || left == 6)
        tile<6, Narrow>(x, unit + r, w, out, p, r), r += 6;
      else if (left == 5 || left >= 10)
        tile<5, Narrow>(x, unit + r, w, out, p, r), r += 5;
      else if (left == 4 || left >= 7)
        tile<4, Narrow>(x, unit + r, w, out, p, r), r += 4;
      else if (left == 3)
        tile<3, Narrow>(x, unit + r, w, out, p, r), r += 3;
      else if (left == 2)
        tile<2, Narrow>(x, unit + r, w, out, p, r), r += 2;
      else
        tile<1, Narrow>(x, unit + r, w, out, p, r), r += 1;
    }
}

}  // namespace

void quantize(const void* x, bool narrow, float bound, uint8_t* q, float* unit, int64_t in, int64_t begin, int64_t end) {
  (narrow ? quantize_rows<true> : quantize_rows<false>)(x, bound, q, unit, in, begin, end);
}

void multiply(const uint8_t* q, const float* unit, int64_t rows, const Weight& w, const Output& out, int64_t begin, int64_t end,
              bool tiles) {
  if (tiles && rows >= kTiledRows) return multiply_by_tiles(q, unit, rows, w, out, begin, end);
  (out.narrow ? multiply_panels<true> : multiply_panels<false>)(q, unit, rows, w, out, begin, end);
}

}  // namespace starling::vnni
