// The operands of our own matrix products: how numbers lie in panels, and how a vector of them is multiplied. For products.cpp
// and pair_attention.cpp.
#pragma once

#include "backend/cpu/kernels/pairs.h"
#include "backend/cpu/kernels/small_products.h"

namespace starling::kernels::STARLING_ISA {
namespace {

// f32 as it is.
struct Floats {
  using Element = float;
  static constexpr int64_t kUnit = 1;               // numbers that are multiplied and added up by a lane at once
  static constexpr int kVectors = L == 16 ? 4 : 2;  // of a panel; with 6 rows and an input all registers but one or three are in use
  static constexpr int64_t kDepth =
      L == 16 ? 128 : 256;  // of what is summed at a time: a panel of it stays in the first level of the cache
  static constexpr int64_t kPanel = kVectors * L;

  static vf all(const float* p) { return splat(*p); }
  static vf some(const float* p) { return load(p); }
  static vf add(vf sum, vf a, vf b) { return sum + a * b; }

  // Panel p of a weight [in, out], or of the transpose of [out, in].
  static void pack_weight(const float* w, bool transposed, int64_t in, int64_t out, int64_t p, float* to) {
    const int64_t first = p * kPanel;
    if (!transposed) {
      for (int64_t i = 0; i < in; ++i) pack(w + i * out + first, out - first, to + i * kPanel);
      return;
    }
    for (int64_t o = 0; o < kPanel; o += L)
      blocks(0, in, [&](int64_t i, auto width) {
        vf block[L];
        for (int c = 0; c < L; ++c) block[c] = first + o + c < out ? load(w + (first + o + c) * in + i, width) : vf{};
        transpose_block(block);
        for (int64_t c = 0, n = std::min<int64_t>(L, in - i); c < n; ++c) store(to + (i + c) * kPanel + o, block[c]);
      });
  }

 private:
  static void pack(const float* x, int64_t columns, float* out) {
    if (columns >= kPanel) {
      std::memcpy(out, x, kPanel * sizeof(float));
      return;
    }
    std::memcpy(out, x, columns * sizeof(float));
    std::memset(out + columns, 0, (kPanel - columns) * sizeof(float));
  }
};

#if defined(__AVX512BF16__)
// bf16 in pairs.
struct Pairs {
  using Element = bf16;
  static constexpr int64_t kUnit = 2;
  static constexpr int kVectors = 4;
  static constexpr int64_t kDepth = 1024, kPanel = kVectors * L;  // from the second level of the cache, which keeps up
  static constexpr int64_t kGradientDepth = 256;                  // of rows that are packed at a time

  static __m512bh all(const bf16* p) {
    int32_t two;
    std::memcpy(&two, p, sizeof two);
    return (__m512bh)_mm512_set1_epi32(two);
  }
  static __m512bh some(const bf16* p) { return (__m512bh)_mm512_loadu_si512(p); }
  static vf add(vf sum, __m512bh a, __m512bh b) { return (vf)_mm512_dpbf16_ps((__m512)sum, a, b); }
  static __m512bh ones() { return (__m512bh)_mm512_set1_epi32(0x3f803f80); }

  // Rows [depth, columns] in panels [columns / panel, depth / 2, panel, 2], row by row, since a row may be a page away from the next one.
  static void pack_panels(const bf16* x, int64_t stride, int64_t depth, int64_t columns, bf16* out) {
    const int64_t pairs = (depth + 1) / 2;
    for (int64_t j = 0; j < pairs; ++j, x += 2 * stride)
      for (int64_t c = 0; c < round_up(columns, kPanel); c += 32)
        interleave(some_at(x + c, columns - c), 2 * j + 1 < depth ? some_at(x + stride + c, columns - c) : _mm512_setzero_si512(),
                   out + c / kPanel * kPanel * 2 * pairs + j * 2 * kPanel + 2 * (c % kPanel));
  }
  static void pack_weight(const float* w, bool transposed, int64_t in, int64_t out, int64_t p, bf16* to) {
    const auto some_of = [](const float* x, int64_t n) {
      return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << std::clamp<int64_t>(n, 0, 16)) - 1), x);
    };
    if (!transposed) {
      const float* const first = w + p * kPanel;
      const int64_t width = out - p * kPanel;
      const auto row = [&](int64_t i, int64_t c) {
        return _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(some_of(first + i * out + c, width - c)));
      };
      for (int64_t i = 0; i < in; i += 2)
        for (int64_t c = 0; c < kPanel; c += 16) {
          constexpr int64_t kAhead = 16;  // rows, which lie too far from each other for processors to foresee them
          prefetch(first + (i + kAhead) * out + c), prefetch(first + (i + kAhead + 1) * out + c);
          _mm512_storeu_si512(to + i * kPanel + 2 * c, _mm512_or_si512(row(i, c), _mm512_slli_epi32(row(i + 1, c), 16)));
        }
      return;
    }
    for (int64_t o = p * kPanel, place = 0; place < kPanel; o += 16, place += 16) {
      for (int64_t i = 0; i < in; i += 32) {
        __m512i block[16];
        for (int64_t c = 0; c < 16; ++c) {
          const float* const row = w + (o + c) * in + i;
          block[c] = o + c < out ? (__m512i)_mm512_cvtne2ps_pbh(some_of(row + 16, in - i - 16), some_of(row, in - i)) : __m512i{};
        }
        transpose_words(block);
        for (int64_t j = 0; j < 16 && i + 2 * j < in; ++j) _mm512_storeu_si512(to + (i + 2 * j) * kPanel + 2 * place, block[j]);
      }
    }
  }
};
#endif

// Rows of the next tile, of those that are left: 7 are 4 and 3, not 6 and 1, since a tile of few rows waits for its own sums.
inline int64_t next_rows(int64_t left) {
  if (left >= 12 || left <= 6) return std::min<int64_t>(left, 6);
  return left >= 10 ? 5 : 4;
}

// sums [Rows, Vectors * L] += a [Rows, ...] b [..., Vectors * L] over so many steps: row i's number of step j is at a[i * row + j * step],
// b's of step j are at b + j * ldb.
template <class P, int Rows, int Vectors>
inline void add_products(vf (&sums)[Rows][Vectors], const typename P::Element* a, int64_t row, int64_t step, const typename P::Element* b,
                         int64_t ldb, int64_t steps) {
  for (int64_t j = 0; j < steps; ++j, b += ldb) {
    decltype(P::some(b)) v[Vectors];
#pragma GCC unroll 4
    for (int i = 0; i < Vectors; ++i) v[i] = P::some(b + i * L * P::kUnit);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const auto x = P::all(a + r * row + j * step);
#pragma GCC unroll 4
      for (int i = 0; i < Vectors; ++i) sums[r][i] = P::add(sums[r][i], x, v[i]);
    }
  }
}

}  // namespace
}  // namespace starling::kernels::STARLING_ISA
