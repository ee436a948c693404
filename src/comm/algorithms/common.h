// What the algorithms share: byte ranges of the parts of a tensor.
#pragma once

#include <algorithm>

#include "comm/algorithms/algorithms.h"

namespace starling {

inline Schedule::Local::Op op_of(Reduce reduce) { return reduce == Reduce::sum ? Schedule::Local::add : Schedule::Local::maximum; }

// Part k of the tensor in elements, and the same in bytes.
struct PartBytes {
  int64_t offset, bytes, count;
};
inline PartBytes part_bytes(const CollectiveShape& s, int k) {
  const Range range = part(s.count, k, s.size);
  return {range.begin * size_of(s.type), range.count() * size_of(s.type), range.count()};
}

inline void append(Schedule& first, Schedule second) {
  first.rounds.reserve(first.rounds.size() + second.rounds.size());
  for (auto& round : second.rounds) first.rounds.push_back(std::move(round));
  first.scratch_bytes = std::max(first.scratch_bytes, second.scratch_bytes);
}

}  // namespace starling
