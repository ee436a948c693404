// Checks that a race's first target is meaningful, so that no arm is recommended for reaching a trivial one.
#pragma once

#include <string>

#include "experiments/results.h"

namespace starling {

// Returns why reaching the target means nothing, and what to change: one worker made too few updates or learned nothing, an untrained model
// already has the value, or every run reaches it by its first validation. "" if the target is meaningful.
std::string meaningless_target(const RaceResults& results);

}  // namespace starling
