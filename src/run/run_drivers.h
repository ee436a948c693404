// The drivers of synchronous and of asynchronous runs.
#pragma once

#include <memory>

#include "run/run_driver.h"
#include "run/run_parts.h"

namespace starling {

// Returns the driver for the strategy of the run's replica. The arguments must outlive it.
std::unique_ptr<RunDriver> make_run_driver(RunParts& run, const RunStatus& status);

}  // namespace starling
