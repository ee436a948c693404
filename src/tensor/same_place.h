// Whether two tensors begin at the same address, so that writing one changes the other.
#pragma once

#include "tensor/tensor.h"

namespace starling {

inline bool same_place(const Tensor& a, const Tensor& b) { return a.raw() == b.raw(); }

}  // namespace starling
