// The family of strategies that exchange compressed gradients at every update.
#pragma once

#include <memory>
#include <vector>

#include "strategies/strategy.h"

namespace starling {

// For two or more ranks; buckets: the units of exchange.
std::unique_ptr<Strategy> make_sparse(const StrategyOptions& options, std::vector<Bucket> buckets, const ParameterStore& parameters,
                                      int size);

}  // namespace starling
