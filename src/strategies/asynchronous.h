// The asynchronous family: Downpour (Dean et al. 2012) and its relatives. Workers compute gradients and push them to servers, which update
// the parameters at once or after summing k pushes; workers fetch parameters from there, and nobody waits for anybody. One class plays both
// parts.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace starling {

// Throws ConfigError unless there is a rank for each server and at least one worker.
std::unique_ptr<Strategy> make_asynchronous(const StrategyOptions& options, const ParameterStore& parameters, int rank, int size);

}  // namespace starling
