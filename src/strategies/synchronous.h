// Synchronous data parallelism, in one form for three strategies: buckets of gradients are summed at their owners, owners update their
// parameters, and each rank gets what it does not own during its next forward pass (deferred_gather.h).
//   all-reduce                    every rank owns everything: sums everywhere, nothing to get back
//   all-reduce, sharded optimizer rank r owns part r of each bucket: reduce-scatter, update, all-gather (ZeRO-1)
//   parameter-server              servers own the parts: push, update, pull
// Muon's matrices are updated by one owner each, who gets their gradients from the owners of the parts (ownership.h).
#pragma once

#include <memory>
#include <vector>

#include "strategies/strategy.h"

namespace starling {

// The options must suit the number of ranks (strategies/factory.h).
std::unique_ptr<Strategy> make_synchronous(const StrategyOptions& options, const ParameterStore& parameters,
                                           const std::vector<ExchangedTable>& tables, int rank, int size,
                                           const std::vector<MatrixPlace>& matrices);

}  // namespace starling
