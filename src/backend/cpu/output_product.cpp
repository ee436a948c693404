// The best of logits that never exist as a whole: a few columns of the output table are multiplied at a time, and their logits of all rows
// are examined while they are in the cache, where rows x vocabulary would not stay.
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/panels.h"

namespace starling {
namespace {

constexpr int64_t kColumns = 256;           // multiplied at a time: with kRows rows 280 KB of logits
constexpr int64_t kStride = kColumns + 16;  // of a row of them; by 256 the rows would share an eighth of the first level's lines
constexpr int64_t kRows = 256;
constexpr int64_t kWholeRows = 64;  // rows of whole logits, where the product is a library's

}  // namespace

void CpuBackend::linear_top_logits(const Tensor& x, const Packed& w, const Tensor& b, double bound, int64_t k, const Tensor& values,
                                   const Tensor& indices, const Tensor& denominator) {
  enter();
  const int64_t R = values.rows(), V = w.out;
  CHECK(x.columns() == w.in && x.rows() >= R && k <= V, "{} best of {} times [{}, {}] for {} rows", k, x.shape().text(), w.in, V, R);
  const float* const bias = b ? b.data<float>() : nullptr;
  const auto add = [&](int64_t row, float* z, int64_t column, int64_t n) {
    if (bias) wide_.add(bias + column, z, 0, n);
    if (bound > 0) wide_.clamp(z, static_cast<float>(bound), z, 0, n);
    wide_.top_logits(z, n, column, k, values.data<float>() + row * k, indices.data<int32_t>() + row * k,
                     denominator.data<double>() + 2 * row);
  };
  // multiply(row, rows, column, columns, y) makes rows of y, kStride apart. A thread has rows: the same bits for any number of threads.
  const auto by_columns = [&](auto multiply) {
    reserve_scratch(kRows * kStride);
    fixed_ranges(R, 1, [&](int64_t begin, int64_t end, int thread) {
      float* const y = scratch(thread);
      for (int64_t first = begin; first < end; first += kRows)
        for (int64_t c = 0; c < V; c += kColumns) {
          const int64_t rows = std::min(kRows, end - first), columns = std::min(kColumns, V - c);
          multiply(first, rows, c, columns, y);
          for (int64_t r = 0; r < rows; ++r) add(first + r, y + r * kStride, c, columns);
        }
    });
  };
  if (w.quantized && static_cast<const PackedInt8&>(w).panels) {
    const auto& weight = static_cast<const Int8Panels&>(w);
    const RoundedRows rounded = round_rows(x.rows(0, R), weight);
    return by_columns([&](int64_t row, int64_t rows, int64_t column, int64_t columns, float* y) {
      vnni::multiply(rounded.integers + row * vnni::padded_in(w.in), rounded.units + row, rows, weight.part(column, columns),
                     {nullptr, false, false, false, y, kStride}, 0, vnni::padded_out(columns) / vnni::kPanel, tiles_);
    });
  }
  if (own_products(w)) {
    const std::byte* const panels = static_cast<const Panels&>(w).values();
    const int64_t panel = kernels_.panel_width(), bytes = w.in * size_of(activation_);  // of a column
    return by_columns([&](int64_t row, int64_t rows, int64_t column, int64_t columns, float* y) {
      kernels_.multiply({element(x, row, 0), w.in, panels + column * bytes, kStride, nullptr, false, false, true, y, kStride}, 0, rows, 0,
                        (columns + panel - 1) / panel);
    });
  }
  if (!logits_ || logits_.count() < kWholeRows * V) logits_ = Tensor({kWholeRows * V}, DType::f32, memory());
  for (int64_t first = 0; first < R; first += kWholeRows) {
    const int64_t rows = std::min(kWholeRows, x.rows() - first);
    const Tensor logits = logits_.slice(0, {rows, V});
    linear(x.rows(first, first + rows), w, {}, logits, Activation::none, Write::overwrite);
    ranges(std::min(rows, R - first), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) add(first + r, logits.data<float>() + r * V, 0, V);
    });
  }
}

}  // namespace starling
