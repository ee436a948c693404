// The asynchronous family: Downpour (Dean et al. 2012) and its relatives. Workers compute gradients and push them to servers, which update
// the parameters at once or once k pushes are summed, and fetch parameters from there; nobody waits for anybody. One object plays
// either part.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace starling {

// ConfigError unless there is a rank for each server and one worker at least.
std::unique_ptr<Strategy> make_asynchronous(const StrategyOptions& options, const ParameterStore& parameters, int rank, int size);

}  // namespace starling
