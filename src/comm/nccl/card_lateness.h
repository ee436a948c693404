// Finds out why a collective of cards does not end.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "comm/nccl/card_group.h"

namespace starling::STARLING_CUDA {

struct CardLateness {
  std::string operation;
  double waited_s = 0;
  int64_t number = 0;          // of the operation, among those of its group, counted from 1
  CardGroup group;             // who takes part
  int self = 0;                // this rank's number on the communicator of all ranks
  std::vector<RankNews> news;  // by these numbers
  std::vector<std::string> hosts;
  std::array<std::string, CardCounts{}.size()> purposes;  // of this rank's groups
};
// "all-reduce (ring) of cards (the exchange of gradients) waited 10.0 s; rank 2 on beta has not begun it: ..."
std::string describe(const CardLateness&);

}  // namespace starling::STARLING_CUDA
