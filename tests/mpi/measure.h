// Figures of the MPI world on this machine, or between the network namespaces of tools/network.sh.
#pragma once

#include <cstdint>

#include "comm/communicator.h"

namespace starling {

// Prints, on rank 0: the time of small all-reduces, the bandwidth of ring all-reduces of `megabytes`, and what processor time they take.
void measure(Communicator& comm, double megabytes);

// One ring all-reduce and nothing else, for comparison with the counters of network interfaces; prints the bytes that rank 0 sent.
void one_ring(Communicator& comm, double megabytes);

}  // namespace starling
