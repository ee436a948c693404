// Progress of race and tune on standard output while their runs are trained.
#pragma once

#include "experiments/race.h"

namespace starling {

// Prints complete lines and, within a run, its number of updates: in a line that is redrawn on a terminal, elsewhere in lines some seconds
// to a minute apart.
RaceProgress race_screen();

}  // namespace starling
