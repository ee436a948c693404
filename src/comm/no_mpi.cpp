// Stands in for src/comm/mpi/ where Open MPI was not found at build time.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "comm/world.h"

namespace starling {

bool started_by_mpi() { return std::getenv("OMPI_COMM_WORLD_SIZE") || std::getenv("PMIX_RANK"); }

World make_mpi_world() { throw ConfigError("this build of Starling has no MPI; install libopenmpi-dev and openmpi-bin and build again"); }

std::string mpi_version() { return "none"; }

std::string rank_label() { return ""; }

void abort_run(int status) {
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace starling
