// Matrix products of bf16 by AVX512-BF16: y = x w of packed weights, and gradients of weights. Elements are summed in the order of the
// inner dimension, in pieces of kDepth: neither the number of rows nor the cut into ranges changes a bit.
#include "backend/cpu/kernels/arithmetic.h"
#include "backend/cpu/kernels/pairs.h"
#include "backend/cpu/kernels/table_parts.h"

namespace starling::kernels::STARLING_ISA {
#if defined(__AVX512BF16__)
namespace {

constexpr int64_t kPanel = 16 * kPairVectors;  // columns of a tile
constexpr int64_t kDepth = 256;                // of what is summed at a time: a panel of it fits into the first level of the cache

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// c [Rows, columns] = or += the products of a tile.
template <int Rows>
void gradient_tile(const bf16* a, int64_t step, const bf16* b, int64_t depth, float* c, int64_t ld, int64_t columns, bool add) {
  __m512 sums[Rows][kPairVectors] = {};
  if (columns >= kPanel) {
    if (add)
#pragma GCC unroll 6
      for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
        for (int i = 0; i < kPairVectors; ++i) sums[r][i] = _mm512_loadu_ps(c + r * ld + 16 * i);
    add_pairs(sums, a, 2, step, b, 2 * kPanel, depth);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < kPairVectors; ++i) _mm512_storeu_ps(c + r * ld + 16 * i, sums[r][i]);
    return;
  }
  __mmask16 mask[kPairVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kPairVectors; ++i) mask[i] = static_cast<__mmask16>((1u << std::clamp<int64_t>(columns - 16 * i, 0, 16)) - 1);
  if (add)
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < kPairVectors; ++i) sums[r][i] = _mm512_maskz_loadu_ps(mask[i], c + r * ld + 16 * i);
  add_pairs(sums, a, 2, step, b, 2 * kPanel, depth);
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int i = 0; i < kPairVectors; ++i) _mm512_mask_storeu_ps(c + r * ld + 16 * i, mask[i], sums[r][i]);
}

constexpr decltype(&gradient_tile<1>) kGradientTiles[] = {nullptr,          gradient_tile<1>, gradient_tile<2>, gradient_tile<3>,
                                                          gradient_tile<4>, gradient_tile<5>, gradient_tile<6>};

// Rows of the next tile, of those that are left: 7 are 4 and 3, not 6 and 1, since a tile of few rows waits for its own sums.
int next_rows(int64_t left) {
  static_assert(kPairRows == 6);
  if (left >= 12 || left <= 6) return static_cast<int>(std::min<int64_t>(left, 6));
  return left >= 10 ? 5 : 4;
}

// Numbers from row to row of the pairs of so many columns: an odd number of lines of the cache, so that a column has all its sets.
int64_t pair_stride(int64_t columns) { return 2 * round_up(columns, 32) + 32; }

// In floats: of the pairs of both sides.
int64_t weight_gradient_scratch(int64_t rows, int64_t columns) {
  return kDepth / 4 * (pair_stride(rows) + 2 * round_up(columns, kPanel)) + 16;
}

// [depth, columns] in panels of pairs, row by row, since a row of c may be a page away from the next one. The last panel's columns beyond
// are zeros.
void pair_panels(const bf16* c, int64_t ldc, int64_t depth, int64_t columns, int64_t pairs, bf16* panels) {
  for (int64_t j = 0; j < pairs; ++j, c += 2 * ldc)
    for (int64_t column = 0; column < columns; column += kPanel) {
      bf16* const to = panels + column * 2 * pairs + j * 2 * kPanel;
      for (int64_t half = 0; half < kPanel; half += 32) {
        const int64_t at = column + half, width = columns - at;
        interleave(some_at(c + at, width), 2 * j + 1 < depth ? some_at(c + ldc + at, width) : _mm512_setzero_si512(), to + 2 * half);
      }
    }
}

void weight_gradient(const WeightGradientTask& t, float* scratch) {
  auto* const a = reinterpret_cast<bf16*>((reinterpret_cast<uintptr_t>(scratch) + 63) & ~uintptr_t{63});
  const int64_t lda = pair_stride(t.rows);
  bf16* const panels = a + lda * (kDepth / 2);
  for (int64_t first = 0; first < t.depth; first += kDepth) {
    const int64_t depth = std::min(kDepth, t.depth - first), pairs = (depth + 1) / 2;
    const bool add = t.accumulate || first > 0;
    pair_rows(static_cast<const bf16*>(t.a) + first * t.lda, t.lda, depth, t.rows, a, lda);
    pair_panels(static_cast<const bf16*>(t.c) + first * t.ldc, t.ldc, depth, t.columns, pairs, panels);
    for (int64_t column = 0; column < t.columns; column += kPanel) {
      const int64_t width = std::min(kPanel, t.columns - column);
      const bf16* const b = panels + column * 2 * pairs;
      for (int64_t r = 0; r < t.rows;) {
        const int rows = next_rows(t.rows - r);
        kGradientTiles[rows](a + 2 * r, lda, b, pairs, t.dw + r * t.ld + column, t.ld, width, add);
        r += rows;
      }
      if (!t.column_sums) continue;
      __m512 sums[kPairVectors] = {};
      const __m512bh one = (__m512bh)_mm512_set1_epi32(0x3f803f80);
      for (int64_t j = 0; j < pairs; ++j)
#pragma GCC unroll 4
        for (int i = 0; i < kPairVectors; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], one, pairs_at(b + j * 2 * kPanel + 32 * i));
      for (int64_t i = 0; i < width; i += 16) {
        float* const to = t.column_sums + column + i;
        const auto mask = static_cast<__mmask16>((1u << std::min<int64_t>(width - i, 16)) - 1);
        const __m512 before = first > 0 || t.add_column_sums ? _mm512_maskz_loadu_ps(mask, to) : _mm512_setzero_ps();
        _mm512_mask_storeu_ps(to, mask, _mm512_add_ps(before, sums[i / 16]));
      }
    }
  }
}

// -- y = x w --------------------------------------------------------------------------------------------------------------

constexpr int64_t kBlockRows = 16 * kPairRows;  // whose sums of a panel are kept between pieces of the inner dimension

template <bool Wide>
inline void write_vector(const PairProduct& t, __m512 sum, int64_t at, __m512 bias, __mmask16 mask) {
  sum = _mm512_add_ps(sum, bias);
  if (t.relu) sum = _mm512_max_ps(_mm512_setzero_ps(), sum);  // NaN stays
  if constexpr (Wide) {
    float* const y = static_cast<float*>(t.y) + at;
    if (t.accumulate) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, y));
    _mm512_mask_storeu_ps(y, mask, sum);
  } else {
    bf16* const y = static_cast<bf16*>(t.y) + at;
    if (t.accumulate)
      sum = _mm512_add_ps(sum, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, y)), 16)));
    _mm256_mask_storeu_epi16(y, mask, (__m256i)_mm512_cvtneps_pbh(sum));
  }
}

// A tile of places [first, first + depth) of the inner dimension. `kept` [Rows, kPanel]: sums of the places before, where first > 0, and
// for those behind, where there are any.
template <int Rows, bool Wide>
void linear_tile(const PairProduct& t, int64_t row, int64_t panel, int64_t first, int64_t depth, float* kept) {
  __m512 sums[Rows][kPairVectors] = {};
  if (first > 0)
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < kPairVectors; ++i) sums[r][i] = _mm512_loadu_ps(kept + r * kPanel + 16 * i);
  add_pairs(sums, static_cast<const bf16*>(t.x) + row * t.in + first, t.in, 2,
            static_cast<const bf16*>(t.panels) + panel * kPanel * t.in + first * kPanel, 2 * kPanel, depth / 2);
  if (first + depth < t.in) {
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < kPairVectors; ++i) _mm512_storeu_ps(kept + r * kPanel + 16 * i, sums[r][i]);
    return;
  }
  const int64_t columns = t.out - panel * kPanel;
#pragma GCC unroll 4
  for (int i = 0; i < kPairVectors; ++i) {
    const auto mask = static_cast<__mmask16>((1u << std::clamp<int64_t>(columns - 16 * i, 0, 16)) - 1);
    const __m512 bias = t.bias ? _mm512_maskz_loadu_ps(mask, t.bias + panel * kPanel + 16 * i) : _mm512_setzero_ps();
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) write_vector<Wide>(t, sums[r][i], (row + r) * t.ld + panel * kPanel + 16 * i, bias, mask);
  }
}

template <bool Wide>
void multiply(const PairProduct& t, int64_t begin, int64_t end, int64_t first_panel, int64_t last_panel) {
  static constexpr decltype(&linear_tile<1, Wide>) kTiles[] = {nullptr,
                                                               linear_tile<1, Wide>,
                                                               linear_tile<2, Wide>,
                                                               linear_tile<3, Wide>,
                                                               linear_tile<4, Wide>,
                                                               linear_tile<5, Wide>,
                                                               linear_tile<6, Wide>};
  alignas(64) float kept[kBlockRows * kPanel];
  for (int64_t block = begin; block < end; block += kBlockRows) {
    const int64_t last = std::min(end, block + kBlockRows);
    for (int64_t p = first_panel; p < last_panel; ++p)
      for (int64_t first = 0; first < t.in; first += kDepth) {
        const int64_t depth = std::min(kDepth, t.in - first);
        for (int64_t r = block; r < last;) {
          const int rows = next_rows(last - r);
          kTiles[rows](t, r, p, first, depth, kept + (r - block) * kPanel);
          r += rows;
        }
      }
  }
}

void multiply_pairs(const PairProduct& t, int64_t begin, int64_t end, int64_t first_panel, int64_t last_panel) {
  (t.wide ? multiply<true> : multiply<false>)(t, begin, end, first_panel, last_panel);
}

int64_t pair_panel() { return kPanel; }

// Panel p of a weight [in, out], or of its transpose [out, in], in f32.
void pack_pairs(const float* w, bool transposed, int64_t in, int64_t out, int64_t p, void* panels) {
  bf16* const to = static_cast<bf16*>(panels) + p * kPanel * in;
  const auto mask_of = [](int64_t n) { return static_cast<__mmask16>((1u << std::clamp<int64_t>(n, 0, 16)) - 1); };
  for (int64_t o = p * kPanel, place = 0; place < kPanel; o += 16, place += 16) {
    const __mmask16 columns = mask_of(out - o);
    if (!transposed) {
      for (int64_t i = 0; i < in; i += 2) {
        const auto row = [&](int64_t at) {
          return _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(columns, w + at * out + o)));
        };
        _mm512_storeu_si512(to + i * kPanel + 2 * place, _mm512_or_si512(row(i), _mm512_slli_epi32(row(i + 1), 16)));
      }
      continue;
    }
    for (int64_t i = 0; i < in; i += 32) {
      __m512i block[16];
      for (int64_t c = 0; c < 16; ++c) {
        const float* const row = w + (o + c) * in + i;
        block[c] = o + c < out ? (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(mask_of(in - i - 16), row + 16),
                                                              _mm512_maskz_loadu_ps(mask_of(in - i), row))
                               : _mm512_setzero_si512();
      }
      transpose_words(block);
      for (int64_t j = 0; j < 16 && i + 2 * j < in; ++j) _mm512_storeu_si512(to + (i + 2 * j) * kPanel + 2 * place, block[j]);
    }
  }
}

// Steps of twelve sums each, as many as hide that a sum waits for itself.
template <class Step>
void multiply_and_add(int64_t steps, Step step) {
  __m512 sums[12];
#pragma GCC unroll 12
  for (int i = 0; i < 12; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));  // different ones: the compiler would compute one of equals
  for (int64_t i = 0; i < steps; ++i)
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = step(sum);
#pragma GCC unroll 12
  for (__m512& sum : sums) asm volatile("" : : "v"(sum));
}

void spin(bool pairs, int64_t steps) {
  const __m512i bits = _mm512_set1_epi32(0x3f803f80);  // both a number near one and a pair of ones
  if (pairs)
    multiply_and_add(steps, [&](__m512 sum) { return _mm512_dpbf16_ps(sum, (__m512bh)bits, (__m512bh)bits); });
  else
    multiply_and_add(steps, [&](__m512 sum) { return _mm512_fmadd_ps(_mm512_castsi512_ps(bits), _mm512_castsi512_ps(bits), sum); });
}

}  // namespace

void set_pair_products(Table& t) {
  t.spin = spin;
  t.weight_gradient_scratch = weight_gradient_scratch, t.weight_gradient = weight_gradient;
  t.pair_panel = pair_panel, t.pack_pairs = pack_pairs, t.multiply_pairs = multiply_pairs;
}
#else
void set_pair_products(Table&) {}
#endif

}  // namespace starling::kernels::STARLING_ISA
