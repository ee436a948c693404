// Ranks whose cards are connected, and what they exchange. Each group has an index in the counts that ranks send each other, so that only
// operations of one group are compared.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/nccl/nccl.h"

namespace starling::STARLING_CUDA {

class CardWatch;

struct CardGroup {
  std::string purpose;       // "the exchange of gradients"
  std::vector<int> members;  // numbers on the communicator of all ranks
  size_t place = 0;          // index of the group's counts in CardCounts, the same on all members
};
// What a rank reports before a group is made: its number, the places that it has taken, and how far it has counted at any of them.
struct CardPlaces {
  int rank = 0;
  uint32_t taken = 0;
  int64_t counted = 0;
};

// Make groups that are about to be connected: one of all ranks of a communicator, or one per pair of neighbours and direction. Blocking,
// collective.
std::shared_ptr<const CardGroup> group_of(CardWatch& watch, Communicator& comm, const char* purpose);
struct NeighbourGroup {
  int from, to;  // ranks of the communicator
  std::shared_ptr<const CardGroup> group;
};
// In the order of the ranks; only those that this rank belongs to.
std::vector<NeighbourGroup> groups_of_neighbours(CardWatch& watch, Communicator& comm);

}  // namespace starling::STARLING_CUDA
