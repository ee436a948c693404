// A race as one self-contained SVG: the metric over virtual time, a small picture for each network and number of workers, and bars of the
// convergence speed-up.
#pragma once

#include <string>

#include "experiments/results.h"

namespace starling {

std::string race_picture(const RaceResults& results);

}  // namespace starling
