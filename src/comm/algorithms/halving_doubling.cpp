// The first p = 2^k ranks halve what they are responsible for with partners at distance 1, 2, 4, ... p/2, then gather in the opposite
// order. So the largest messages go to the nearest ranks, which are on the same node, and all ranks of a node send to other nodes at the
// same time. The ranks from p on give their tensor to rank - p first and get the result at the end. (Rabenseifner 2004)
#include <algorithm>

#include "comm/algorithms/common.h"

namespace starling {

Schedule halving_doubling_all_reduce(const CollectiveShape& s, Reduce reduce) {
  Schedule schedule;
  const int64_t element = size_of(s.type), bytes = s.count * element;
  int p = 1;
  while (2 * p <= s.size) p *= 2;

  if (s.rank >= p) {
    Schedule::Round fold, result;
    fold.sends.push_back({s.rank - p, Area::data, 0, bytes});
    result.receives.push_back({s.rank - p, Area::data, 0, bytes});
    schedule.rounds = {std::move(fold), std::move(result)};
    return schedule;
  }
  if (s.rank + p < s.size) {
    Schedule::Round fold;
    fold.receives.push_back({s.rank + p, Area::scratch, 0, bytes});
    fold.after.push_back({op_of(reduce), Area::data, 0, Area::scratch, 0, s.count});
    schedule.scratch_bytes = bytes;
    schedule.rounds.push_back(std::move(fold));
  }

  std::vector<Range> kept;  // the ranges before each halving
  Range mine{0, s.count};
  for (int distance = 1; distance < p; distance *= 2) {
    kept.push_back(mine);
    const int64_t middle = mine.begin + part(mine.count(), 0, 2).end;
    const bool lower = (s.rank & distance) == 0;
    const Range keep = lower ? Range{mine.begin, middle} : Range{middle, mine.end};
    const Range give = lower ? Range{middle, mine.end} : Range{mine.begin, middle};
    Schedule::Round round;
    const int partner = s.rank ^ distance;
    round.sends.push_back({partner, Area::data, give.begin * element, give.count() * element});
    round.receives.push_back({partner, Area::scratch, 0, keep.count() * element});
    round.after.push_back({op_of(reduce), Area::data, keep.begin * element, Area::scratch, 0, keep.count()});
    schedule.scratch_bytes = std::max(schedule.scratch_bytes, keep.count() * element);
    schedule.rounds.push_back(std::move(round));
    mine = keep;
  }
  for (int distance = p / 2; distance >= 1; distance /= 2) {
    const Range whole = kept.back();
    kept.pop_back();
    const bool lower = (s.rank & distance) == 0;
    const Range missing = lower ? Range{mine.end, whole.end} : Range{whole.begin, mine.begin};
    Schedule::Round round;
    const int partner = s.rank ^ distance;
    round.sends.push_back({partner, Area::data, mine.begin * element, mine.count() * element});
    round.receives.push_back({partner, Area::data, missing.begin * element, missing.count() * element});
    schedule.rounds.push_back(std::move(round));
    mine = whole;
  }

  if (s.rank + p < s.size) {
    Schedule::Round result;
    result.sends.push_back({s.rank + p, Area::data, 0, bytes});
    schedule.rounds.push_back(std::move(result));
  }
  return schedule;
}

}  // namespace starling
