// How far a run is, and what ends it.
#pragma once

#include <cstdint>
#include <string>

#include "train/run_parts.h"

namespace starling {

struct RunStatus {
  explicit RunStatus(const RunParts& run) : run(run), start(run.clock().seconds()) {}

  const RunParts& run;
  double start;                // by the world's clock, s
  double earlier_seconds = 0;  // of the runs before this one
  int64_t epoch = 1;
  bool stopped = false;  // by a signal
  bool over = false;     // as the sums of an update, or the time of earlier runs, tell
  bool early_stopped = false;

  // All of the run's time, s.
  double elapsed() const { return earlier_seconds + run.clock().seconds() - start; }
  bool time_is_up() const;
  // Limits that this rank knows of itself.
  bool limits_reached() const;
  // Which limit ended the run, in words; stalled: validations since the best one.
  std::string limit_reached(int64_t stalled) const;
  // Of the whole run, 0 to 1; counted: as in RunDriver.
  double fraction(double counted) const;
};

}  // namespace starling
