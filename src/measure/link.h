// Measures what ranks need to talk: the link between two of them, and the sum of all gradients.
#pragma once

#include <functional>
#include <span>

#include "comm/world.h"
#include "strategies/buckets.h"
#include "strategies/options.h"

namespace starling {

struct LinkRates {
  double latency_s = 0, bandwidth = 0;  // one way; bytes/s of each direction, both at once, of memory that no cache holds
};

// Measures the link between the first and the last rank. Collective, the same on all ranks.
LinkRates measure_link(World& world);

// Returns the seconds of an all-reduce of all buckets without computing, on the slowest rank. forget: makes caches forget the gradients, as
// computing does. Collective, the same on all ranks.
double time_all_reduce(World& world, const Tensor& gradients, std::span<const Bucket> buckets, Wire wire,
                       const std::function<void()>& forget);

}  // namespace starling
