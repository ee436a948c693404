// What race and tune show on standard output while their runs are trained.
#pragma once

#include "experiments/race.h"

namespace starling {

// Whole lines; within a run the updates so far, in a line that a terminal redraws, elsewhere as lines some seconds to a minute apart.
RaceProgress race_screen();

}  // namespace starling
