// Half-open ranges of elements of a flat buffer, and rounding of counts.
#pragma once

#include <cstdint>
#include <vector>

namespace starling {

struct Range {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Rounds n up to a multiple.
inline int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

inline int64_t total(const std::vector<Range>& ranges) {
  int64_t n = 0;
  for (const Range& r : ranges) n += r.count();
  return n;
}

// Visits elements `part` of the concatenation of `runs`: calls visit(run, at) for each contiguous run among them, where `at` is the
// position of its first element in the concatenation.
template <class Visit>
void each_run(const std::vector<Range>& runs, const Range& part, Visit visit) {
  int64_t at = 0;  // position of the run's first element
  for (const Range& run : runs) {
    const int64_t first = at > part.begin ? at : part.begin, last = at + run.count() < part.end ? at + run.count() : part.end;
    if (first < last) visit(Range{run.begin + first - at, run.begin + last - at}, first);
    at += run.count();
    if (at >= part.end) return;
  }
}

}  // namespace starling
