// Tasks of int8.cu: 8-bit weights, whose integers are multiplied as numbers of activation type (which is exact, since they are below 2^8).
#pragma once

#include "backend/cuda/kernels/tasks.h"

namespace starling::STARLING_CUDA::kernels {

// scales[o] = the largest |w| of output o, integers = round(127 w / scale), in w's order.
struct QuantizeWeight {
  const float* w;
  bool transposed;  // [out, in]
  int64_t in, out;
  float* scales;
  void* integers;
};
void quantize_weight(Type, const QuantizeWeight&, cudaStream_t);

// integers = round(127 x / bounds[n]), saturated; bounds[n] = input_bound, or the row's largest |x| if that is 0.
struct QuantizeRows {
  const void* x;
  float input_bound;
  void* integers;
  float* bounds;
  int64_t rows, columns;
};
void quantize_rows(Type, const QuantizeRows&, cudaStream_t);

// y = (or +=) activation(bounds[n] scales[c] / 127^2 sums + bias)
struct ScaleSums {
  const float *sums, *bounds, *scales, *bias;  // bias may be null
  bool relu, accumulate;
  void* y;
  int64_t rows, columns;
};
void scale_sums(Type of_y, const ScaleSums&, cudaStream_t);

}  // namespace starling::STARLING_CUDA::kernels
