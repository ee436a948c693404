// A half-open range of elements of a flat buffer; rounding counts up.
#pragma once

#include <cstdint>
#include <vector>

namespace starling {

struct Range {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// n, or the next multiple above it.
inline int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

inline int64_t total(const std::vector<Range>& ranges) {
  int64_t n = 0;
  for (const Range& r : ranges) n += r.count();
  return n;
}

}  // namespace starling
