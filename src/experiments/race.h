// `starling race`: trains arms side by side in the simulator with the same data order and seeds, and compares them. Every
// finished run is kept, so that an interrupted race continues where it was.
#pragma once

#include <functional>
#include <string>

#include "experiments/recipe.h"

namespace starling {

struct RaceProgress {
  std::function<void(const std::string& line)> say;                                       // a line for people
  std::function<void(const std::string& run, int64_t step, int64_t steps)> updated = {};  // after each update of rank 0
  std::function<void()> prepared = {};  // nothing stands in the way any more: what belongs to the race may be written
};

// Runs the race of the recipe, whose cluster has its rates of computing, `jobs` runs at a time (results do not depend on how many; the
// calls of progress come from several threads, one at a time); writes results.csv, curves.csv, table.md and race.svg into its directory.
// Returns 0, or 128 + signal when a signal ended a run (all is kept; the same call continues). Throws ConfigError when the directory holds
// runs of another recipe or of other data; a race that is refused before its first run leaves no trace.
int run_race(const RaceRecipe& recipe, const RaceProgress& progress, int jobs = 1);

}  // namespace starling
