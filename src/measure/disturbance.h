// Notices what else used the processors of the hosts while ranks measured.
#pragma once

#include <string>

#include "base/processor_use.h"
#include "measure/peers.h"

namespace starling {

// All ranks make the same calls at about the same time.
class DisturbanceWatch {
 public:
  // threads: those with which this rank computes. Begins to watch.
  DisturbanceWatch(Peers& peers, int threads);

  // Returns what disturbed the measurement since the beginning, on the host where it was worst, or ""; the same on all ranks.
  std::string text() const;

 private:
  Peers& peers_;
  int threads_;
  ProcessorUse before_;
  double start_;
};

// One rank's part: which host (kernel) and which process, the seconds that passed, and the processor time that was used meanwhile.
struct RankUse {
  double host = 0, process = 0, threads = 0, seconds = 0, idle_s = 0, own_s = 0, stolen_s = 0, processors = 0;
};
// Returns what disturbed these ranks, or "". Ranks that are threads of one process share its processor time.
std::string disturbance_of(const std::vector<RankUse>& ranks);

}  // namespace starling
