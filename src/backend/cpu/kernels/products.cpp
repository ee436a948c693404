// Matrix products of our own: y = x w of packed weights, and gradients of weights. A tile of rows and one panel's columns stays in
// registers. Elements are summed in the order of the inner dimension, in pieces: neither the number of rows nor the cut into ranges changes
// a bit.
#include "backend/cpu/kernels/operands.h"
#include "backend/cpu/kernels/table_parts.h"

namespace starling::kernels::STARLING_ISA {
namespace {

constexpr int64_t kBlockRows = 16 * kTileRows;  // whose sums of a panel are kept between pieces of the inner dimension

// Asks for the lines of a tile that will be written, so that they are there when its sums are.
template <int Rows, int64_t Columns, class T>
inline void prefetch_tile(const T* y, int64_t ld) {
  constexpr int64_t kLine = 64 / sizeof(T);
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int64_t c = 0; c < Columns; c += kLine) __builtin_prefetch(y + r * ld + c, 1, 3);
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
  prefetch_tile<Rows, P::kPanel>(static_cast<const Y*>(t.y) + row * t.ld + panel * P::kPanel, t.ld);
  add_products<P>(sums, static_cast<const Element*>(t.x) + row * t.in + first, t.in, P::kUnit,
                  static_cast<const Element*>(t.panels) + panel * P::kPanel * t.in + first * P::kPanel, P::kPanel * P::kUnit,
                  depth / P::kUnit);
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

template <class P>
void set(Table& t) {
  t.panel_width = panel_width<P>, t.pack_weight = pack_weight<P>, t.multiply = multiply<P>;
}

#if defined(__AVX512BF16__)
// -- gradients of weights -------------------------------------------------------------------------------------------------

// c [Rows, columns] = or += the products of a tile.
template <int Rows>
void gradient_tile(const bf16* a, int64_t lda, const bf16* b, int64_t steps, float* c, int64_t ld, int64_t columns, bool add) {
  constexpr int64_t kPanel = Pairs::kPanel;
  vf sums[Rows][Pairs::kVectors] = {};
  const bool whole = columns >= kPanel;
  if (whole) prefetch_tile<Rows, kPanel>(c, ld);
  add_products<Pairs>(sums, a, 2, lda, b, 2 * kPanel, steps);
  const auto finish = [&](float* to, int64_t stride) {
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < Pairs::kVectors; ++i) {
        float* const place = to + r * stride + i * L;
        store(place, add ? load(place) + sums[r][i] : sums[r][i]);
      }
  };
  if (whole) return finish(c, ld);
  alignas(64) float part[Rows * kPanel] = {};
  for (int r = 0; add && r < Rows; ++r) std::memcpy(part + r * kPanel, c + r * ld, columns * sizeof(float));
  finish(part, kPanel);
  for (int r = 0; r < Rows; ++r) std::memcpy(c + r * ld, part + r * kPanel, columns * sizeof(float));
}

void add_column_sums(const bf16* b, int64_t steps, float* sums, int64_t columns, bool add) {
  vf total[Pairs::kVectors] = {};
  for (int64_t j = 0; j < steps; ++j, b += 2 * Pairs::kPanel)
#pragma GCC unroll 4
    for (int i = 0; i < Pairs::kVectors; ++i) total[i] = Pairs::add(total[i], Pairs::ones(), Pairs::some(b + i * 2 * L));
  blocks(0, std::min(columns, Pairs::kPanel),
         [&](int64_t c, auto width) { store(sums + c, add ? load(sums + c, width) + total[c / L] : total[c / L], width); });
}

// Numbers from row to row of so many columns of a, in pairs: an odd number of lines of the cache, so that a column has all its sets.
int64_t row_stride(int64_t columns) { return round_up(2 * columns, 64) + 32; }

// In floats: both sides, packed.
int64_t weight_gradient_scratch(int64_t rows, int64_t columns) {
  return Pairs::kGradientDepth / 2 * (row_stride(rows) + 2 * round_up(columns, Pairs::kPanel)) / 2 + 16;
}

// The rows of both sides that are packed next, which come into the second level of the cache while others are multiplied: read only when
// they are packed, they took a seventh of the time.
struct NextRows {
  NextRows(const WeightGradientTask& t, int64_t from, int64_t tiles)
      : task(t), next(from), last(std::min(t.depth, from + Pairs::kGradientDepth)), each((last - next + tiles - 1) / tiles) {}
  void fetch_some() {
    for (const int64_t end = std::min(last, next + each); next < end; ++next) {
      fetch(static_cast<const bf16*>(task.a) + next * task.lda, task.rows);
      fetch(static_cast<const bf16*>(task.c) + next * task.ldc, task.columns);
    }
  }
  static void fetch(const bf16* row, int64_t numbers) {
    for (int64_t i = 0; i < numbers; i += 32) prefetch(row + i);
  }
  const WeightGradientTask& task;
  int64_t next, last, each;
};

void weight_gradient(const WeightGradientTask& t, float* scratch) {
  static constexpr decltype(&gradient_tile<1>) kTiles[] = {gradient_tile<1>, gradient_tile<2>, gradient_tile<3>,
                                                           gradient_tile<4>, gradient_tile<5>, gradient_tile<6>};
  constexpr int64_t kDepth = Pairs::kGradientDepth, kPanel = Pairs::kPanel;
  auto* const a = reinterpret_cast<bf16*>((reinterpret_cast<uintptr_t>(scratch) + 63) & ~uintptr_t{63});
  const int64_t lda = row_stride(t.rows);
  bf16* const panels = a + lda * (kDepth / 2);
  const int64_t tiles = (t.rows + kTileRows - 1) / kTileRows * ((t.columns + kPanel - 1) / kPanel);
  for (int64_t first = 0; first < t.depth; first += kDepth) {
    const int64_t depth = std::min(kDepth, t.depth - first), steps = (depth + 1) / 2;
    const bool add = t.accumulate || first > 0;
    pair_rows(static_cast<const bf16*>(t.a) + first * t.lda, t.lda, depth, t.rows, a, lda);
    Pairs::pack_panels(static_cast<const bf16*>(t.c) + first * t.ldc, t.ldc, depth, t.columns, panels);
    NextRows next(t, first + depth, tiles);
    for (int64_t column = 0; column < t.columns; column += kPanel) {
      const bf16* const b = panels + column * steps * 2;
      for (int64_t r = 0, rows; r < t.rows; r += rows) {
        rows = next_rows(t.rows - r);
        next.fetch_some();
        kTiles[rows - 1](a + 2 * r, lda, b, steps, t.dw + r * t.ld + column, t.ld, t.columns - column, add);
      }
      if (t.column_sums) add_column_sums(b, steps, t.column_sums + column, t.columns - column, t.add_column_sums || first > 0);
    }
  }
}

// -- the processor's rates --------------------------------------------------------------------------------------------------

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
  t.weight_gradient_scratch = weight_gradient_scratch, t.weight_gradient = weight_gradient;
  t.spin = spin;
#endif
}

}  // namespace starling::kernels::STARLING_ISA
