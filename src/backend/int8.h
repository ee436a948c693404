// Matrices as 8-bit integers with one scale an output: what Backend::pack_int8 multiplies with and what quantised model files hold.
// Here, and not in a backend, because both must come to the same integers.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace starling {

struct Int8Matrix {
  int64_t rows = 0, columns = 0;
  bool by_row = false;         // an output is a row (tables [V, D]), else a column (weights [in, out])
  std::vector<int8_t> values;  // [rows, columns], -127 to 127
  std::vector<float> scales;   // one an output: the largest magnitude of its weights

  // What the integers stand for: scale * integer / 127. Rounding that again gives the same integers and scales.
  double value(int64_t row, int64_t column) const {
    return values[row * columns + column] * static_cast<double>(scales[by_row ? row : column]) / 127;
  }
};

// The integers round(127 w / scale) of w [rows, columns] (f32 or f64), to nearest, ties to even; an output of zeros has scale 0.
Int8Matrix round_to_int8(const Tensor& w, bool by_row);

}  // namespace starling
