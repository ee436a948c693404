// Matrix products of our own: y = x w of packed weights, and gradients of weights. A tile of rows and one panel's columns stays in
// registers. Elements are summed in the order of the inner dimension, in pieces: neither the number of rows nor the cut into ranges changes
// a bit.
#include "backend/cpu/kernels/operands.h"
#include "backend/cpu/kernels/table_parts.h"

namespace starling::kernels::STARLING_ISA {
namespace {

constexpr int64_t kBlockRows = 16 * kTileRows;  // whose sums of a panel are kept between pieces of the inner dimension

// Rows of the next tile, of those that are left: 7 are 4 and 3, not 6 and 1, since a tile of few rows waits for its own sums.
int64_t next_rows(int64_t left) {
  if (left >= 12 || left <= 6) return std::min<int64_t>(left, 6);
  return left >= 10 ? 5 : 4;
}

// sums [Rows, panel] += a [Rows, ...] b [..., panel] over so many steps; row i's number of step j is at a[i * row + j * step].
template <class P, int Rows>
inline void add_products(vf (&sums)[Rows][P::kVectors], const typename P::Element* a, int64_t row, int64_t step,
                         const typename P::Element* b, int64_t steps) {
  for (int64_t j = 0; j < steps; ++j, b += P::kPanel * P::kUnit) {
    decltype(P::some(b)) v[P::kVectors];
#pragma GCC unroll 4
    for (int i = 0; i < P::kVectors; ++i) v[i] = P::some(b + i * L * P::kUnit);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const auto x = P::all(a + r * row + j * step);
#pragma GCC unroll 4
      for (int i = 0; i < P::kVectors; ++i) sums[r][i] = P::add(sums[r][i], x, v[i]);
    }
  }
}

template <class P, int Rows>
inline void load_sums(vf (&sums)[Rows][P::kVectors], const float* from, int64_t ld) {
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int i = 0; i < P::kVectors; ++i) sums[r][i] = load(from + r * ld + i * L);
}
template <class P, int Rows>
inline void store_sums(const vf (&sums)[Rows][P::kVectors], float* to, int64_t ld) {
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int i = 0; i < P::kVectors; ++i) store(to + r * ld + i * L, sums[r][i]);
}

// -- y = x w --------------------------------------------------------------------------------------------------------------

// What comes after a sum. `width` is Full or Part.
template <class Y, class Width>
inline void finish(const PanelProduct& t, vf sum, int64_t row, int64_t column, Width width) {
  Y* const y = static_cast<Y*>(t.y) + row * t.ld + column;
  if (t.bias) sum += load(t.bias + column, width);
  if (t.relu) sum = sum < vf{} ? vf{} : sum;  // NaN stays
  if (t.accumulate) sum += load(y, width);
  store(y, sum, width);
}

// The sums [rows, panel] of a panel that is not full. Apart, so that the compiler keeps the sums of a tile in registers.
template <class P, class Y>
__attribute__((noinline)) void finish_rest(const PanelProduct& t, const float* sums, int64_t rows, int64_t row, int64_t first) {
  for (int64_t r = 0; r < rows; ++r, sums += P::kPanel)
    blocks(first, t.out, [&](int64_t c, auto width) { finish<Y>(t, load(sums + (c - first)), row + r, c, width); });
}

// A tile of places [first, first + depth) of the inner dimension. `kept` [Rows, panel]: sums of the places before, where first > 0, and for
// those behind, where there are any.
template <class P, class Y, int Rows>
void linear_tile(const PanelProduct& t, int64_t row, int64_t panel, int64_t first, int64_t depth, float* kept) {
  using Element = typename P::Element;
  vf sums[Rows][P::kVectors] = {};
  if (first > 0) load_sums<P>(sums, kept, P::kPanel);
  add_products<P>(sums, static_cast<const Element*>(t.x) + row * t.in + first, t.in, P::kUnit,
                  static_cast<const Element*>(t.panels) + panel * P::kPanel * t.in + first * P::kPanel, depth / P::kUnit);
  if (first + depth < t.in) return store_sums<P>(sums, kept, P::kPanel);
  const int64_t column = panel * P::kPanel;
  if (column + P::kPanel > t.out) {
    store_sums<P>(sums, kept, P::kPanel);
    return finish_rest<P, Y>(t, kept, Rows, row, column);
  }
#pragma GCC unroll 4
  for (int i = 0; i < P::kVectors; ++i)
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) finish<Y>(t, sums[r][i], row + r, column + i * L, Full{});
}

template <class P, class Y>
void multiply_rows(const PanelProduct& t, int64_t begin, int64_t end, int64_t first_panel, int64_t last_panel) {
  static constexpr decltype(&linear_tile<P, Y, 1>) kTiles[] = {linear_tile<P, Y, 1>, linear_tile<P, Y, 2>, linear_tile<P, Y, 3>,
                                                               linear_tile<P, Y, 4>, linear_tile<P, Y, 5>, linear_tile<P, Y, 6>};
  alignas(64) float kept[kBlockRows * P::kPanel];
  for (int64_t block = begin; block < end; block += kBlockRows) {
    const int64_t last = std::min(end, block + kBlockRows);
    for (int64_t p = first_panel; p < last_panel; ++p)
      for (int64_t first = 0; first < t.in; first += P::kDepth)
        for (int64_t r = block, rows; r < last; r += rows) {
          rows = next_rows(last - r);
          kTiles[rows - 1](t, r, p, first, std::min(P::kDepth, t.in - first), kept + (r - block) * P::kPanel);
        }
  }
}

template <class P>
void multiply(const PanelProduct& t, int64_t begin, int64_t end, int64_t first_panel, int64_t last_panel) {
  (t.wide ? multiply_rows<P, float> : multiply_rows<P, typename P::Element>)(t, begin, end, first_panel, last_panel);
}

template <class P>
int64_t panel_width() {
  return P::kPanel;
}

template <class P>
void pack_weight(const float* w, bool transposed, int64_t in, int64_t out, int64_t p, void* panels) {
  P::pack_weight(w, transposed, in, out, p, static_cast<typename P::Element*>(panels) + p * P::kPanel * in);
}

// -- gradients of weights -------------------------------------------------------------------------------------------------

// c [Rows, columns] = or += the products of a tile.
template <class P, int Rows>
void gradient_tile(const typename P::Element* a, int64_t lda, const typename P::Element* b, int64_t steps, float* c, int64_t ld,
                   int64_t columns, bool add) {
  vf sums[Rows][P::kVectors] = {};
  if (columns >= P::kPanel) {
    if (add) load_sums<P>(sums, c, ld);
    add_products<P>(sums, a, P::kUnit, lda, b, steps);
    return store_sums<P>(sums, c, ld);
  }
  alignas(64) float part[Rows * P::kPanel] = {};
  for (int r = 0; add && r < Rows; ++r) std::memcpy(part + r * P::kPanel, c + r * ld, columns * sizeof(float));
  load_sums<P>(sums, part, P::kPanel);
  add_products<P>(sums, a, P::kUnit, lda, b, steps);
  store_sums<P>(sums, part, P::kPanel);
  for (int r = 0; r < Rows; ++r) std::memcpy(c + r * ld, part + r * P::kPanel, columns * sizeof(float));
}

template <class P>
void add_column_sums(const typename P::Element* b, int64_t steps, float* sums, int64_t columns, bool add) {
  vf total[P::kVectors] = {};
  for (int64_t j = 0; j < steps; ++j, b += P::kPanel * P::kUnit)
#pragma GCC unroll 4
    for (int i = 0; i < P::kVectors; ++i) total[i] = P::add(total[i], P::ones(), P::some(b + i * L * P::kUnit));
  blocks(0, std::min(columns, P::kPanel),
         [&](int64_t c, auto width) { store(sums + c, add ? load(sums + c, width) + total[c / L] : total[c / L], width); });
}

// Numbers from row to row of so many columns of a: an odd number of lines of the cache, so that a column has all its sets.
template <class P>
int64_t row_stride(int64_t columns) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(typename P::Element));
  return round_up(columns * P::kUnit, 2 * kLine) + kLine;
}

// In floats: both sides, packed.
template <class P>
int64_t weight_gradient_scratch(int64_t rows, int64_t columns) {
  const int64_t numbers = P::kDepth / P::kUnit * (row_stride<P>(rows) + round_up(columns, P::kPanel) * P::kUnit);
  return numbers * static_cast<int64_t>(sizeof(typename P::Element)) / 4 + 16;
}

template <class P>
void weight_gradient(const WeightGradientTask& t, float* scratch) {
  using Element = typename P::Element;
  static constexpr decltype(&gradient_tile<P, 1>) kTiles[] = {gradient_tile<P, 1>, gradient_tile<P, 2>, gradient_tile<P, 3>,
                                                              gradient_tile<P, 4>, gradient_tile<P, 5>, gradient_tile<P, 6>};
  auto* const a = reinterpret_cast<Element*>((reinterpret_cast<uintptr_t>(scratch) + 63) & ~uintptr_t{63});
  const int64_t lda = row_stride<P>(t.rows);
  Element* const panels = a + lda * (P::kDepth / P::kUnit);
  for (int64_t first = 0; first < t.depth; first += P::kDepth) {
    const int64_t depth = std::min(P::kDepth, t.depth - first), steps = (depth + P::kUnit - 1) / P::kUnit;
    const bool add = t.accumulate || first > 0;
    P::pack_rows(static_cast<const Element*>(t.a) + first * t.lda, t.lda, depth, t.rows, a, lda);
    P::pack_panels(static_cast<const Element*>(t.c) + first * t.ldc, t.ldc, depth, t.columns, panels);
    for (int64_t column = 0; column < t.columns; column += P::kPanel) {
      const Element* const b = panels + column * steps * P::kUnit;
      for (int64_t r = 0, rows; r < t.rows; r += rows) {
        rows = next_rows(t.rows - r);
        kTiles[rows - 1](a + r * P::kUnit, lda, b, steps, t.dw + r * t.ld + column, t.ld, t.columns - column, add);
      }
      if (t.column_sums) add_column_sums<P>(b, steps, t.column_sums + column, t.columns - column, t.add_column_sums || first > 0);
    }
  }
}

template <class P>
void set(Table& t) {
  t.panel_width = panel_width<P>, t.pack_weight = pack_weight<P>, t.multiply = multiply<P>;
  t.weight_gradient_scratch = weight_gradient_scratch<P>, t.weight_gradient = weight_gradient<P>;
}

#if defined(__AVX512BF16__)
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
#endif

}  // namespace

template <>
void set_products<float>(Table& t) {
  set<Floats>(t);
}
template <>
void set_products<bf16>([[maybe_unused]] Table& t) {
#if defined(__AVX512BF16__)
  set<Pairs>(t);
  t.spin = spin;
#endif
}

}  // namespace starling::kernels::STARLING_ISA
