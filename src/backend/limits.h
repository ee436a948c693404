// What a device can achieve at best, measured on random numbers: the yardsticks for whole steps in `starling bench`. On a CPU by oneDNN's
// fastest forms (cpu/product_times), on a card by its own products, timed over many calls.
#pragma once

#include <map>

#include "backend/profiled.h"

namespace starling {

// The seconds of one product alone; threads: on a CPU; 0: those of this thread.
double product_seconds(Backend& backend, const ProductShape& shape, int threads = 0);
// Reduces calls by shape to few shapes, which can be timed within seconds: products that differ only in their number of rows are replaced
// by ones with their mean, in groups of about as many calls. Unchanged if there are few.
std::map<ProductShape, int64_t> with_few_rows(const std::map<ProductShape, int64_t>& calls);
// The rate of large products of activations, FLOP/s.
double peak_product_rate(Backend& backend);
// The bytes per second that passes over large flat buffers read and write together.
double memory_rate(Backend& backend);

}  // namespace starling
