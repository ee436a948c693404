// oneDNN's names for element types.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include "tensor/tensor.h"

namespace starling {

inline dnnl::memory::data_type dnnl_type(DType t) {
  return t == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

}  // namespace starling
