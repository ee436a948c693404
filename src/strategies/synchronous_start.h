// Sums whole gradients in the first updates, before a strategy begins whose replicas would drift too far apart from random weights.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace starling {

// Runs that many updates (1 or more) by `synchronous`, then those of `strategy`, which begins with the parameters reached. Both have the
// same buckets; replicas() is that of `strategy` from the start.
std::unique_ptr<Strategy> make_synchronous_start(std::unique_ptr<Strategy> synchronous, std::unique_ptr<Strategy> strategy,
                                                 int64_t updates);

}  // namespace starling
