// `starling tune`: better values for a configuration's learning rate, batch, optimizer, dropout and subword sampling, found by short runs
// within a budget. Each rung is a race of one worker (race.h) in a directory of its own, so that a tuning that was stopped goes on where it
// was.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/race.h"
#include "experiments/tune_plan.h"

namespace starling {

struct TuneOptions {
  std::string config;              // file, as of starling train -c; empty: the defaults
  std::vector<Override> settings;  // keys of the configuration
  std::string output = "tune";     // directory
  double minutes = 60;             // wall clock, about
  int candidates = 12;             // besides the configuration's own values
  std::vector<std::string> keys;   // of tunable_keys(); empty: all
  int jobs = 1;                    // runs at a time
  double tokens_per_second = 0;    // of one run; 0: measured, or as the tuning that is continued
  bool dry_run = false;            // says what would be run, and runs nothing but the measurement of the speed
  RaceProgress progress;
  std::function<void(RaceRecipe&)> set_rates;  // of computing, for the virtual times in the tables
};

/// Returns 0, or 128 + signal when a signal ended it (the same call continues). Writes <output>/best.yml and table.md. Throws ConfigError
/// for what cannot be tuned, or if the directory holds a tuning with another budget, other candidates or keys.
int run_tune(const TuneOptions& options);

}  // namespace starling
