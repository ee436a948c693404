// How fast the matrix products of a training or decoding step run alone: the yardstick that `starling bench` holds the whole step against.
#pragma once

#include "backend/profiled.h"

namespace starling {

// Seconds of one product on this thread's number of threads, or on so many, in the fastest oneDNN form found (packed weights; matmul and,
// for weight gradients, inner product). Of a quantised one: 8-bit integers into 32-bit sums.
double product_seconds(DType type, const ProductShape& shape, int threads = 0);
// Floating-point operations of one product, and of the products of one head.
double product_flops(const ProductShape& shape);
double attention_product_flops(const AttentionShape& shape);
// Rate of a large square product, FLOP/s.
double peak_product_rate(DType type);

}  // namespace starling
