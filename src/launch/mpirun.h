// Runs mpirun, passes signals on to its ranks, and sees to it that all of them end.
#pragma once

#include <string>
#include <vector>

namespace starling {

struct MpirunEnd {
  int status = 0;        // mpirun's exit status, or 128 + the signal that ended it
  bool stopped = false;  // SIGINT, SIGTERM or SIGHUP came, here or to mpirun
};

// Returns when mpirun and the ranks of this host have ended. A first signal to stop, to this process or to mpirun, is passed on to the
// ranks, which save a checkpoint; after a second one, or if they have not ended `grace_seconds` later (0: however long that takes), all are
// ended. Throws ConfigError where mpirun is not installed.
MpirunEnd run_mpirun(const std::vector<std::string>& command, double grace_seconds);

// Waits this many seconds. Returns the signal to stop that came during the wait, or 0.
int pause_for(double seconds);

}  // namespace starling
