// Predicts the time and memory of a layout of ranks on a simulated cluster, from a few updates in which nothing is computed.
#pragma once

#include "measure/time_layout.h"
#include "sim/scenario.h"

namespace starling {

// Simulates the scenario's ranks, arranged and updated as `run` says, with the scenario's jitter, stragglers and faults.
LayoutResult forecast(const LayoutRun& run, Scenario scenario);

}  // namespace starling
