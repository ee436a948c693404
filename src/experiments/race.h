// `starling race`: trains arms side by side in the simulator with the same data order and seeds, and compares them. Finished runs are kept,
// so an interrupted race resumes where it stopped.
#pragma once

#include <functional>
#include <string>

#include "experiments/recipe.h"

namespace starling {

struct RaceProgress {
  std::function<void(const std::string& line)> say;                                       // a line for people
  std::function<void(const std::string& run, int64_t step, int64_t steps)> updated = {};  // after each update of rank 0
  std::function<void()> prepared = {};  // preparation succeeded: files that belong to the race may be written
};

// Runs the race of a recipe whose cluster has its computing rates, with `jobs` runs at a time; the results do not depend on `jobs`.
// Progress callbacks come from several threads, one at a time. Writes results.csv, curves.csv, table.md and race.svg into the race
// directory. Returns 0, or 128 + signal if a signal ended a run; everything is kept, and the same call resumes the race. Throws ConfigError
// if the directory holds runs of another recipe or of other data. A race that is refused before its first run leaves no trace.
int run_race(const RaceRecipe& recipe, const RaceProgress& progress, int jobs = 1);

}  // namespace starling
