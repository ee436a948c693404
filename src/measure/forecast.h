// What a layout of ranks would bring on a simulated cluster: its time and memory, by a few updates in which nothing is computed.
#pragma once

#include "measure/time_layout.h"
#include "sim/scenario.h"

namespace starling {

// The scenario's ranks, arranged and updated as the run says. Jitter, stragglers and faults are as in the scenario.
LayoutResult forecast(const LayoutRun& run, Scenario scenario);

}  // namespace starling
