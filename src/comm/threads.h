// How many computing threads a rank should have when its configuration does not say.
#pragma once

#include "comm/communicator.h"

namespace starling {

// The cores of the affinity mask, divided among the ranks of this host that have the same mask; at least 1. Collective, blocking.
int threads_for_rank(Communicator& comm);

}  // namespace starling
