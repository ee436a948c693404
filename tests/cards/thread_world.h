// A world whose ranks are threads of this process, in real time, each with an emulated card of its own. Schedules are executed as MPI's
// engine does, in the order of the schedule; whoever waits makes all of its rank's operations advance.
#pragma once

#include <functional>

#include "comm/world.h"

namespace starling {

// Runs rank_main on that many ranks and cards. If ranks throw, the first error is thrown again when all have ended; whoever waits for one
// that has ended so gets a PeerError.
void run_threads(int ranks, const std::function<void(World&)>& rank_main);

}  // namespace starling
