// Makes a strategy from its options: checks which of them go together, and what they mean for ranks, batch and rate.
#pragma once

#include <memory>
#include <vector>

#include "comm/world.h"
#include "strategies/strategy.h"

namespace starling {

// Throws ConfigError if options contradict each other.
void check_strategy(const StrategyOptions& options);

// Throws ConfigError if the options do not fit the number of ranks. matrices: those whose steps need them whole (Optimizer).
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, const ParameterStore& parameters,
                                        const std::vector<ExchangedTable>& tables, int rank, int size,
                                        const std::vector<MatrixPlace>& matrices = {});

// The options as the ranks of that world take them: with the buckets of cards where it stands for ranks on cards.
StrategyOptions options_in(const World& world, StrategyOptions options);

// Applies the options that concern the communicator itself: algorithm and deadline.
void comm_settings(const StrategyOptions& options, Communicator& comm);

// The global batch and the rate factor that follow from the options for that many workers.
struct BatchPlan {
  int64_t global_tokens;
  double rate_factor;
};
BatchPlan plan_batch(const StrategyOptions& options, int64_t batch_tokens, int workers);

}  // namespace starling
