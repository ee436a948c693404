// `starling plan --history`: how well predictions have done on this host (measure/history.h).
#pragma once

#include <string>
#include <vector>

#include "laboratory/cluster.h"
#include "measure/history.h"

namespace starling {

// Predicts the throughput of each run, all of which this host has trained, compares it with the run's own and keeps both. Then prints what
// is kept.
void show_history(const std::vector<std::string>& runs, const ClusterArguments& cluster, bool measure_again);

}  // namespace starling
