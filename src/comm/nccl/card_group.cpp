#include "comm/nccl/card_group.h"

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "comm/nccl/card_watch.h"

namespace starling::STARLING_CUDA {
namespace {

// The reports of all ranks of a communicator, combined.
struct Agreed {
  std::vector<int> ranks;
  uint32_t taken = 0;
  int64_t counted = 0;

  // Takes a place that none of them has taken.
  size_t place() {
    size_t place = 0;
    while (taken >> place & 1) ++place;
    CHECK(place < CardCounts{}.size(), "a card belongs to more than {} groups", CardCounts{}.size());
    taken |= uint32_t{1} << place;
    return place;
  }
};

Agreed agree(const CardWatch& watch, Communicator& comm) {
  const CardPlaces own = watch.places();
  Agreed all;
  for (const std::string& said : gather_texts(comm, fmt::format("{} {} {}", own.rank, own.taken, own.counted))) {
    CardPlaces rank;
    std::istringstream(said) >> rank.rank >> rank.taken >> rank.counted;
    all.ranks.push_back(rank.rank);
    all.taken |= rank.taken;
    all.counted = std::max(all.counted, rank.counted);
  }
  return all;
}

}  // namespace

std::shared_ptr<const CardGroup> group_of(CardWatch& watch, Communicator& comm, const char* purpose) {
  Agreed all = agree(watch, comm);
  const auto group = std::make_shared<const CardGroup>(CardGroup{purpose, all.ranks, all.place()});
  watch.take(*group, all.counted);
  return group;
}

std::vector<NeighbourGroup> groups_of_neighbours(CardWatch& watch, Communicator& comm) {
  Agreed all = agree(watch, comm);
  // On and back, for pairs that begin with an even rank, and for the others: a rank belongs to one of either.
  const size_t places[2][2] = {{all.place(), all.place()}, {all.place(), all.place()}};
  std::vector<NeighbourGroup> groups;
  for (int r = std::max(comm.rank() - 1, 0); r <= comm.rank() && r + 1 < comm.size(); ++r)
    for (const bool back : {false, true}) {
      const int from = r + back, to = r + !back;
      const auto rank = [&](int k) { return all.ranks[static_cast<size_t>(k)]; };
      const CardGroup group{"messages between stages", {rank(from), rank(to)}, places[r % 2][back]};
      watch.take(group, all.counted);
      groups.push_back({from, to, std::make_shared<const CardGroup>(group)});
    }
  return groups;
}

}  // namespace starling::STARLING_CUDA
