// Binomial trees over ranks relative to the root: the parent of r is r without its lowest set bit.
#include "comm/algorithms/common.h"

namespace starling {
namespace {

Schedule reduce_to_zero(const CollectiveShape& s, Reduce reduce) {
  Schedule schedule;
  const int64_t bytes = s.count * size_of(s.type);
  for (int bit = 1; bit < s.size; bit *= 2) {
    Schedule::Round round;
    if (s.rank & bit) {
      round.sends.push_back({s.rank - bit, Area::data, 0, bytes});
      schedule.rounds.push_back(std::move(round));
      break;
    }
    if (s.rank + bit >= s.size) continue;
    round.receives.push_back({s.rank + bit, Area::scratch, 0, bytes});
    round.after.push_back({op_of(reduce), Area::data, 0, Area::scratch, 0, s.count});
    schedule.scratch_bytes = bytes;
    schedule.rounds.push_back(std::move(round));
  }
  return schedule;
}

}  // namespace

Schedule tree_broadcast(const CollectiveShape& s, int root) {
  Schedule schedule;
  const int64_t bytes = s.count * size_of(s.type);
  const int relative = (s.rank - root + s.size) % s.size;
  int top = 1;
  while (top < s.size) top *= 2;
  for (int bit = top / 2; bit >= 1; bit /= 2) {
    Schedule::Round round;
    if (relative % (2 * bit) == bit)
      round.receives.push_back({(s.rank - bit + s.size) % s.size, Area::data, 0, bytes});
    else if (relative % (2 * bit) == 0 && relative + bit < s.size)
      round.sends.push_back({(s.rank + bit) % s.size, Area::data, 0, bytes});
    else
      continue;
    schedule.rounds.push_back(std::move(round));
  }
  return schedule;
}

Schedule tree_all_reduce(const CollectiveShape& s, Reduce reduce) {
  Schedule schedule = reduce_to_zero(s, reduce);
  append(schedule, tree_broadcast(s, 0));
  return schedule;
}

}  // namespace starling
