// Measures how fast the matrix products of a training or decoding step run alone: the yardstick for whole steps in `starling bench`.
#pragma once

#include "backend/profiled.h"

namespace starling {

// The seconds of one product on this thread's number of threads, or on `threads`, in the fastest oneDNN form found (packed weights; matmul
// and, for weight gradients, inner product). For a quantised product: 8-bit integers into 32-bit sums.
double product_seconds(DType type, const ProductShape& shape, int threads = 0);
// The floating-point operations of one product, and of the products of one attention head.
double product_flops(const ProductShape& shape);
double attention_product_flops(const AttentionShape& shape);
// The rate of a large square product, FLOP/s.
double peak_product_rate(DType type);

}  // namespace starling
