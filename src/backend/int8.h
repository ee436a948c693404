// Matrices as 8-bit integers with one scale per output: what Backend::pack_int8 multiplies with and what quantised model files hold. They
// are here, not in a backend, because both must arrive at the same integers.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace starling {

struct Int8Matrix {
  int64_t rows = 0, columns = 0;
  bool by_row = false;         // true: an output is a row (tables [V, D]); false: a column (weights [in, out])
  std::vector<int8_t> values;  // [rows, columns], -127 to 127
  std::vector<float> scales;   // one per output: the largest magnitude of its weights

  // The value that an integer stands for: scale * integer / 127. Rounding these values again gives the same integers and scales.
  double value(int64_t row, int64_t column) const {
    return values[row * columns + column] * static_cast<double>(scales[by_row ? row : column]) / 127;
  }
};

// Rounds w [rows, columns] (f32 or f64) to integers round(127 w / scale), to nearest, ties to even; an output of zeros has scale 0.
Int8Matrix round_to_int8(const Tensor& w, bool by_row);

}  // namespace starling
