// What a device can do at best, measured on random numbers: the yardsticks that `starling bench` holds whole steps against. Of the
// processor by oneDNN's fastest forms (cpu/product_times), of a card by its own products, whose time is that of many calls.
#pragma once

#include <map>

#include "backend/profiled.h"

namespace starling {

// Seconds of one product alone; threads: of the processor, 0: those of this thread.
double product_seconds(Backend& backend, const ProductShape& shape, int threads = 0);
// Calls by shape as calls of few shapes, which can be timed within seconds: products that differ in their rows only become those of their
// mean, in groups of about as many calls. As they are where there are few.
std::map<ProductShape, int64_t> with_few_rows(const std::map<ProductShape, int64_t>& calls);
// Rate of large products of activations, FLOP/s.
double peak_product_rate(Backend& backend);
// Bytes a second that pass over large flat buffers read and write together.
double memory_rate(Backend& backend);

}  // namespace starling
