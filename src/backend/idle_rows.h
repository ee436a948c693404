// For implementations of ops: rows that belong to no sentence.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace starling {

// Makes the rows before the first and behind the last sentence zeros.
inline void zero_outside(const Tensor& t, std::span<const int32_t> offsets) {
  if (offsets.front() > 0) t.rows(0, offsets.front()).zero();
  if (offsets.back() < t.rows()) t.rows(offsets.back(), t.rows()).zero();
}

}  // namespace starling
