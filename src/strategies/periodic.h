// The family of strategies that update locally and merge from time to time.
#pragma once

#include <memory>
#include <vector>

#include "strategies/strategy.h"

namespace starling {

// synchronous: the strategy of the first options.periodic.synchronous_steps updates.
std::unique_ptr<Strategy> make_periodic(const StrategyOptions& options, std::unique_ptr<Strategy> synchronous,
                                        const ParameterStore& parameters, const std::vector<ExchangedTable>& tables, int rank, int size);

}  // namespace starling
