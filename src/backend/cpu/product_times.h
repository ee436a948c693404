// How fast the matrix products of a training step run alone: the yardstick that `starling bench` holds the whole step against.
#pragma once

#include "backend/profiled.h"

namespace starling {

// Seconds of one product in the fastest oneDNN form found (packed weights; matmul and, for weight gradients, inner product).
double product_seconds(DType type, const ProductShape& shape);
// Floating-point operations of one product, and of the products of one head.
double product_flops(const ProductShape& shape);
double attention_product_flops(const AttentionShape& shape);
// Rate of a large square product, FLOP/s.
double peak_product_rate(DType type);

}  // namespace starling
