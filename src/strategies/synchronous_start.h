// Whole gradients for the first updates, before a strategy whose replicas would part too far from random weights begins.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace starling {

// So many updates (1 or more) by `synchronous`, then those of `strategy`, which begins with the parameters reached. Both have the same
// buckets; what the ranks are to each other is told of `strategy` from the start.
std::unique_ptr<Strategy> make_synchronous_start(std::unique_ptr<Strategy> synchronous, std::unique_ptr<Strategy> strategy,
                                                 int64_t updates);

}  // namespace starling
