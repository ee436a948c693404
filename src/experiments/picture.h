// Draws a race as one self-contained SVG: the metric over virtual time, in one panel per network and number of workers, and bars of the
// convergence speed-up.
#pragma once

#include <string>

#include "experiments/results.h"

namespace starling {

std::string race_picture(const RaceResults& results);

}  // namespace starling
