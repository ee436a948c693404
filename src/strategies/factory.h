// From the options of a strategy to the strategy: which of them can be meant together, and what they make of ranks, batch and rate.
#pragma once

#include <memory>
#include <vector>

#include "strategies/strategy.h"

namespace starling {

// ConfigError for options that cannot be meant together.
void check_strategy(const StrategyOptions& options);

// ConfigError if the options do not fit the number of ranks. matrices: whose steps need them whole (Optimizer).
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, const ParameterStore& parameters,
                                        const std::vector<ExchangedTable>& tables, int rank, int size,
                                        const std::vector<MatrixPlace>& matrices = {});

// Sets the options that concern the communicator itself: algorithm and deadline.
void comm_settings(const StrategyOptions& options, Communicator& comm);

// The global batch and the rate that follow from the options for so many workers.
struct BatchPlan {
  int64_t global_tokens;
  double rate_factor;
};
BatchPlan plan_batch(const StrategyOptions& options, int64_t batch_tokens, int workers);

}  // namespace starling
