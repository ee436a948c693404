// `starling tune`: searches for better values of a configuration's learning rate, batch, optimizer, dropout and subword sampling by short
// runs within a budget. Each rung is a race of one worker (race.h) in a directory of its own, so an interrupted tuning resumes where it
// stopped.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/race.h"
#include "experiments/tune_plan.h"

namespace starling {

struct TuneOptions {
  std::string config;              // file, as for starling train -c; empty: the defaults
  std::vector<Override> settings;  // configuration keys to override
  std::string output = "tune";     // directory
  double minutes = 60;             // approximate wall-clock time
  int candidates = 12;             // number, in addition to the configuration's own values
  std::vector<std::string> keys;   // from tunable_keys(); empty: all
  int jobs = 1;                    // runs at a time
  double tokens_per_second = 0;    // speed of one run; 0: measured, or taken from the tuning that is resumed
  bool dry_run = false;            // only measures the speed and prints what would be run
  RaceProgress progress;
  std::function<void(RaceRecipe&)> set_rates;  // sets computing rates, for the virtual times in the tables
};

/// Returns 0, or 128 + signal if a signal ended it (the same call resumes). Writes <output>/best.yml and table.md. Throws ConfigError for
/// keys that cannot be tuned, or if the directory holds a tuning with another budget or other candidates or keys.
int run_tune(const TuneOptions& options);

}  // namespace starling
