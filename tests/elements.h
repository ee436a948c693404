// Single elements of a tensor, wherever it lies; i counts from its first.
#pragma once

#include <span>

#include "tensor/tensor.h"

namespace starling {

inline double element(const Tensor& x, int64_t i) { return x.slice(i, Shape{1}).to_doubles()[0]; }
inline void set_element(const Tensor& x, int64_t i, double value) { x.slice(i, Shape{1}).from_doubles({&value, 1}); }

}  // namespace starling
