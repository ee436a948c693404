// Whether a race's first target can say anything: an arm must not be recommended for reaching what means nothing.
#pragma once

#include <string>

#include "experiments/results.h"

namespace starling {

// Why reaching the target means nothing, with what to change: one worker made too few updates or learned nothing, the value is what an
// untrained model has, or every run is there at its first validation. "" if none of these is so.
std::string meaningless_target(const RaceResults& results);

}  // namespace starling
