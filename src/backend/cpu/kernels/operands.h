// The operands of our own matrix products: how numbers lie in panels, and how a vector of them is multiplied. For products.cpp.
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
  static vf ones() { return splat(1); }

  // [depth, columns] with ld numbers from row to row.
  static void pack_rows(const float* x, int64_t stride, int64_t depth, int64_t columns, float* out, int64_t ld) {
    for (int64_t r = 0; r < depth; ++r) std::memcpy(out + r * ld, x + r * stride, columns * sizeof(float));
  }
  // [depth, columns] in panels, row by row, since a row may be a page away from the next one.
  static void pack_panels(const float* x, int64_t stride, int64_t depth, int64_t columns, float* out) {
    for (int64_t r = 0; r < depth; ++r, x += stride)
      for (int64_t c = 0; c < columns; c += kPanel) pack(x + c, columns - c, out + c * depth + r * kPanel);
  }
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
  static constexpr int64_t kDepth = 256, kPanel = kVectors * L;

  static __m512bh all(const bf16* p) {
    int32_t two;
    std::memcpy(&two, p, sizeof two);
    return (__m512bh)_mm512_set1_epi32(two);
  }
  static __m512bh some(const bf16* p) { return (__m512bh)_mm512_loadu_si512(p); }
  static vf add(vf sum, __m512bh a, __m512bh b) { return (vf)_mm512_dpbf16_ps((__m512)sum, a, b); }
  static __m512bh ones() { return (__m512bh)_mm512_set1_epi32(0x3f803f80); }

  static void pack_rows(const bf16* x, int64_t stride, int64_t depth, int64_t columns, bf16* out, int64_t ld) {
    pair_rows(x, stride, depth, columns, out, ld);
  }
  static void pack_panels(const bf16* x, int64_t stride, int64_t depth, int64_t columns, bf16* out) {
    const int64_t pairs = (depth + 1) / 2;
    for (int64_t j = 0; j < pairs; ++j, x += 2 * stride)
      for (int64_t c = 0; c < columns; c += 32)
        interleave(some_at(x + c, columns - c), 2 * j + 1 < depth ? some_at(x + stride + c, columns - c) : _mm512_setzero_si512(),
                   out + c / kPanel * kPanel * 2 * pairs + j * 2 * kPanel + 2 * (c % kPanel));
    if (const int64_t last = columns % kPanel; last > 0 && last <= 32)  // half a panel that nobody wrote
      for (int64_t j = 0; j < pairs; ++j)
        std::memset(static_cast<void*>(out + columns / kPanel * kPanel * 2 * pairs + (2 * j + 1) * kPanel), 0, kPanel * sizeof(bf16));
  }
  static void pack_weight(const float* w, bool transposed, int64_t in, int64_t out, int64_t p, bf16* to) {
    const auto some_of = [](const float* x, int64_t n) {
      return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << std::clamp<int64_t>(n, 0, 16)) - 1), x);
    };
    for (int64_t o = p * kPanel, place = 0; place < kPanel; o += 16, place += 16) {
      if (!transposed) {
        for (int64_t i = 0; i < in; i += 2) {
          const auto row = [&](int64_t at) {
            return _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(some_of(w + at * out + o, out - o)));
          };
          _mm512_storeu_si512(to + i * kPanel + 2 * place, _mm512_or_si512(row(i), _mm512_slli_epi32(row(i + 1), 16)));
        }
        continue;
      }
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

}  // namespace
}  // namespace starling::kernels::STARLING_ISA
