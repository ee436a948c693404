// Products of f32 rows with a weight that is packed in panels: a tile of rows and one panel's columns stays in registers for the whole
// inner dimension. Each element is summed in the order of the inner dimension, whatever the number of rows.
#include "backend/cpu/kernels/arithmetic.h"
#include "backend/cpu/kernels/table_parts.h"

namespace starling::kernels::STARLING_ISA {
namespace {

constexpr int kVectors = L == 16 ? 4 : 2;  // of a panel
constexpr int kTileRows = 6;               // with them the sums, a row of the panel and an input are all registers but one or three
constexpr int64_t kPanel = kVectors * L;
constexpr int64_t kBlockBytes = 256 << 10;  // of inputs that stay in the second level together with a panel

int64_t float_panel() { return kPanel; }

// What comes after the sums [rows, kPanel] of a tile. Apart, so that the compiler keeps the sums of the tile in registers.
__attribute__((noinline)) void finish(const FloatProduct& t, const float* sums, int64_t rows, int64_t panel, int64_t row) {
  const int64_t first = panel * kPanel, end = std::min(first + kPanel, t.out);
  for (int64_t r = 0; r < rows; ++r, sums += kPanel) {
    float* const y = t.y + (row + r) * t.out;
    blocks(first, end, [&](int64_t c, auto width) {
      vf sum = load(sums + (c - first));
      if (t.bias) sum += load(t.bias + c, width);
      if (t.relu) sum = sum < vf{} ? vf{} : sum;  // NaN stays
      if (t.accumulate) sum += load(y + c, width);
      store(y + c, sum, width);
    });
  }
}

template <int Rows>
void tile(const FloatProduct& t, int64_t panel, int64_t row) {
  const float* x = t.x + row * t.in;
  const float* w = t.panels + panel * kPanel * t.in;
  vf sums[Rows][kVectors] = {};
  for (int64_t k = 0; k < t.in; ++k, w += kPanel) {
    vf v[kVectors];
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) v[i] = load(w + i * L);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const vf a = splat(x[r * t.in + k]);
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) sums[r][i] += a * v[i];
    }
  }
  const int64_t first = panel * kPanel;
  if (first + kPanel > t.out) return finish(t, reinterpret_cast<const float*>(sums), Rows, panel, row);
  float* const y = t.y + row * t.out + first;
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) {
    const vf bias = t.bias ? load(t.bias + first + i * L) : vf{};
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      vf sum = sums[r][i] + bias;
      if (t.relu) sum = sum < vf{} ? vf{} : sum;
      if (t.accumulate) sum += load(y + r * t.out + i * L);
      store(y + r * t.out + i * L, sum);
    }
  }
}

void multiply_floats(const FloatProduct& t, int64_t begin, int64_t end) {
  const int64_t block = std::max<int64_t>(kBlockBytes / (4 * t.in) / kTileRows * kTileRows, kTileRows);
  for (int64_t first = 0; first < t.rows; first += block) {
    const int64_t last = std::min(t.rows, first + block);
    for (int64_t p = begin; p < end; ++p)
      for (int64_t r = first; r < last;) {
        const int64_t left = last - r;
        // 7 rows are 4 and 3, not 6 and 1: a tile of few rows waits for the panel.
        if (left >= 12 || left == 6)
          tile<6>(t, p, r), r += 6;
        else if (left == 5 || left >= 10)
          tile<5>(t, p, r), r += 5;
        else if (left == 4 || left >= 7)
          tile<4>(t, p, r), r += 4;
        else if (left == 3)
          tile<3>(t, p, r), r += 3;
        else if (left == 2)
          tile<2>(t, p, r), r += 2;
        else
          tile<1>(t, p, r), r += 1;
      }
  }
}

}  // namespace

void set_float_product(Table& t) { t.float_panel = float_panel, t.multiply_floats = multiply_floats; }

}  // namespace starling::kernels::STARLING_ISA
