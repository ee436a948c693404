// The family of strategies that exchange compressed gradients at every update.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace starling {

// synchronous: the strategy of the first options.periodic.synchronous_steps updates, and of all when there is one rank.
std::unique_ptr<Strategy> make_sparse(const StrategyOptions& options, std::unique_ptr<Strategy> synchronous,
                                      const ParameterStore& parameters, int size);

}  // namespace starling
