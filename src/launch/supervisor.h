// Runs the ranks of a launch, and starts them again when one of them is lost.
#pragma once

#include <string>
#include <vector>

#include "launch/command.h"

namespace starling {

struct Supervision {
  int restarts = 0;           // at most
  double pause_seconds = 10;  // before the first restart
  double grace_seconds = 0;   // that ranks have to end after a signal to stop; 0: however long it takes
  std::string run_directory;  // whose checkpoints show progress; "": unknown
  int layout_ranks = 1;       // of one replica: what is left of the ranks is a multiple of this
};

// Returns the exit status of the last end. Before a restart each host is asked as mpirun asks it, by ssh or what OMPI_MCA_plm_rsh_agent
// names; those that do not answer twice are left out, with fewer ranks, until the next restart.
int supervise(const LaunchOptions& options, const std::vector<std::string>& program, const Supervision& supervision);

}  // namespace starling
