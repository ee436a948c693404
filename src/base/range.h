// A half-open range of elements of a flat buffer.
#pragma once

#include <cstdint>
#include <vector>

namespace starling {

struct Range {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

inline int64_t total(const std::vector<Range>& ranges) {
  int64_t n = 0;
  for (const Range& r : ranges) n += r.count();
  return n;
}

}  // namespace starling
