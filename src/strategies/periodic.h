// The family of strategies that update locally and merge from time to time.
#pragma once

#include <memory>
#include <vector>

#include "strategies/strategy.h"

namespace starling {

// buckets: the units in which the backward pass is timed.
std::unique_ptr<Strategy> make_periodic(const StrategyOptions& options, std::vector<Bucket> buckets, const ParameterStore& parameters,
                                        const std::vector<ExchangedTable>& tables, int size);

}  // namespace starling
