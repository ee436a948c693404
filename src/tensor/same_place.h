// Whether two tensors begin at the same number of the same memory: what one of them is given, the other has.
#pragma once

#include "tensor/tensor.h"

namespace starling {

inline bool same_place(const Tensor& a, const Tensor& b) { return a.raw() == b.raw(); }

}  // namespace starling
