// Ranks meet by TCP connections, for whose answers Open MPI waits without a word. This says which addresses do not answer.
#pragma once

#include <string>
#include <vector>

#include "comm/world.h"

namespace starling {

// Returns the IPv4 addresses, as "10.0.0.2, TCP port 1025", to which this process has begun connections that nobody has answered yet.
std::vector<std::string> unanswered_connections();

// Joins the ranks that mpirun has started, as make_mpi_world does. While that takes longer than `patience_s`, it says on standard error
// which connections are not answered, each once.
World meet_ranks(double patience_s = 10);

}  // namespace starling
