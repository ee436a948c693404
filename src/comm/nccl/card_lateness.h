// Whose fault it is that a collective of cards does not end.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/nccl/nccl.h"

namespace starling::STARLING_CUDA {

struct CardLateness {
  std::string operation;
  double waited_s = 0;
  int64_t number = 0;          // of the operation, among those of this rank's card, counted from 1; 0: a message
  std::vector<int> members;    // who takes part, and
  int self = 0;                // this rank: numbers on the communicator of all ranks
  std::vector<RankNews> news;  // by these numbers
  std::vector<std::string> hosts;
};
// "all-reduce (ring) of cards waited 10.0 s; rank 2 on beta has not begun it: ..."
std::string describe(const CardLateness&);

}  // namespace starling::STARLING_CUDA
