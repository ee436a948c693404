// The ranks of one run and their time: what a rank's main function is given. Four worlds: local (one rank), MPI, the
// simulator (sim/), and one rank among imagined others.
#pragma once

#include <memory>
#include <string>

#include "comm/clock.h"
#include "comm/communicator.h"

namespace starling {

struct World {
  std::unique_ptr<Communicator> comm;
  std::unique_ptr<Clock> clock;
  int local_rank = 0, local_size = 1;  // among the ranks of this host
  bool simulated = false;
  bool computes = true;   // false in the simulator if it only times, with the backend that computes nothing (backend/meta.h)
  bool on_cards = false;  // whether simulated or imagined ranks stand for some whose tensors lie on cards
};

// One rank, wall-clock time.
World make_local_world();

// One of so many ranks, the others imagined: messages and collectives are over at once, and tensors stay as they are. With the backend that
// computes nothing (backend/meta.h) a part of a divided model does its passes by itself, which shows the memory that they take.
World make_imagined_world(int rank, int ranks);

// Whether mpirun or srun started this process as one of several (their environment variables are there).
bool started_by_mpi();
// Joins the ranks that mpirun or srun started; once per process. The communicator's destructor leaves MPI, except while an exception is in
// flight: whoever catches it prints it and calls abort_run. Throws ConfigError, naming the package, if Starling was built without MPI.
World make_mpi_world();
// "rank 2 on beta: " from make_mpi_world until MPI is left, else "".
std::string rank_label();
// Ends this process, and the other ranks too if MPI has been joined and not left. Output is flushed; destructors do not run.
[[noreturn]] void abort_run(int status);
// "Open MPI 4.1.4", or "none".
std::string mpi_version();

}  // namespace starling
