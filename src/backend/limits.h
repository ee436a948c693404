// What a device can do at best, measured on random numbers: the yardsticks that `starling bench` holds whole steps against. Of the
// processor by oneDNN's fastest forms (cpu/product_times), of a card by its own products, whose time is that of many calls.
#pragma once

#include "backend/profiled.h"

namespace starling {

// Seconds of one product alone; threads: of the processor, 0: those of this thread.
double product_seconds(Backend& backend, const ProductShape& shape, int threads = 0);
// Rate of large products of activations, FLOP/s.
double peak_product_rate(Backend& backend);
// Bytes a second that pass over large flat buffers read and write together.
double memory_rate(Backend& backend);

}  // namespace starling
