// How many compute threads a rank should use if its configuration does not say.
#pragma once

#include "comm/communicator.h"

namespace starling {

// Returns the number of cores in the affinity mask, divided by the ranks of this host with the same mask; at least 1. Collective, blocking.
int threads_for_rank(Communicator& comm);

}  // namespace starling
