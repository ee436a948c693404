// Tasks of collective.cu: the arithmetic between the messages of a collective (comm/schedule.h), rounded as on the host.
#pragma once

#include "backend/cuda/kernels/tasks.h"

namespace starling::STARLING_CUDA::kernels {

enum class Element : uint8_t { f32, f64, i32, bf16 };

struct Combine {
  const void* x;
  void* y;
  int64_t count;
};
void add_elements(Element, const Combine&, cudaStream_t);      // y += x
void maximum_elements(Element, const Combine&, cudaStream_t);  // y = the greater of x and y
void add_widened(const Combine&, cudaStream_t);                // y, f32, += x, bf16

}  // namespace starling::STARLING_CUDA::kernels
