// In round s of the reduce-scatter, rank r sends part r-1-s to its right neighbour and adds part r-2-s from its left one; after N-1 rounds
// it has added the last contribution to part r. The ring fixes the order of additions to a part, so all copies are equal bit for bit.
#include <algorithm>

#include "comm/algorithms/common.h"

namespace starling {
namespace {

int wrap(int i, int n) { return ((i % n) + n) % n; }

}  // namespace

Schedule ring_reduce_scatter(const CollectiveShape& s, Reduce reduce) {
  Schedule schedule;
  const int right = wrap(s.rank + 1, s.size), left = wrap(s.rank - 1, s.size);
  for (int step = 0; step + 1 < s.size; ++step) {
    const PartBytes out = part_bytes(s, wrap(s.rank - 1 - step, s.size)), in = part_bytes(s, wrap(s.rank - 2 - step, s.size));
    Schedule::Round round;
    round.sends.push_back({right, Area::data, out.offset, out.bytes});
    round.receives.push_back({left, Area::scratch, 0, in.bytes});
    round.after.push_back({op_of(reduce), Area::data, in.offset, Area::scratch, 0, in.count});
    schedule.scratch_bytes = std::max(schedule.scratch_bytes, in.bytes);
    schedule.rounds.push_back(std::move(round));
  }
  return schedule;
}

Schedule ring_all_gather(const CollectiveShape& s) {
  Schedule schedule;
  const int right = wrap(s.rank + 1, s.size), left = wrap(s.rank - 1, s.size);
  for (int step = 0; step + 1 < s.size; ++step) {
    const PartBytes out = part_bytes(s, wrap(s.rank - step, s.size)), in = part_bytes(s, wrap(s.rank - 1 - step, s.size));
    Schedule::Round round;
    round.sends.push_back({right, Area::data, out.offset, out.bytes});
    round.receives.push_back({left, Area::data, in.offset, in.bytes});
    schedule.rounds.push_back(std::move(round));
  }
  return schedule;
}

Schedule ring_all_reduce(const CollectiveShape& s, Reduce reduce) {
  Schedule schedule = ring_reduce_scatter(s, reduce);
  append(schedule, ring_all_gather(s));
  return schedule;
}

}  // namespace starling
