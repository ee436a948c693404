#include "backend/int8.h"

#include <algorithm>
#include <cmath>

namespace starling {
namespace {

template <class T>
void round_values(const T* w, Int8Matrix& m) {
  m.scales.assign(m.by_row ? m.rows : m.columns, 0.0f);
  m.values.resize(m.rows * m.columns);
  for (int64_t r = 0; r < m.rows; ++r)
    for (int64_t c = 0; c < m.columns; ++c) {
      float& scale = m.scales[m.by_row ? r : c];
      scale = std::max(scale, std::abs(static_cast<float>(w[r * m.columns + c])));
    }
  for (int64_t r = 0; r < m.rows; ++r)
    for (int64_t c = 0; c < m.columns; ++c) {
      const double scale = m.scales[m.by_row ? r : c];
      const int64_t at = r * m.columns + c;
      m.values[at] = scale > 0 ? static_cast<int8_t>(std::nearbyint(127.0 * w[at] / scale)) : int8_t{0};
    }
}

}  // namespace

Int8Matrix round_to_int8(const Tensor& w, bool by_row) {
  CHECK(w.shape().rank() == 2, "8-bit integers of {}", w.shape().text());
  Int8Matrix m{w.rows(), w.columns(), by_row, {}, {}};
  const Tensor here = w.on_host();
  if (w.dtype() == DType::f64)
    round_values(here.data<double>(), m);
  else
    round_values(here.data<float>(), m);
  return m;
}

}  // namespace starling
