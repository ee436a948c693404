// The elements that two workers' parts of one parameter have in common, which have to go from one to the other.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/range.h"

namespace starling {

struct CommonElements {
  std::vector<std::pair<Range, Range>> runs;  // the same elements, as ranges of the one part and of the other
  int64_t count = 0;
};

// a, b: ascending ranges of the whole parameter.
inline CommonElements common_elements(const std::vector<Range>& a, const std::vector<Range>& b) {
  CommonElements common;
  int64_t at_a = 0, at_b = 0;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const int64_t begin = std::max(a[i].begin, b[k].begin), end = std::min(a[i].end, b[k].end);
    if (begin < end) {
      const int64_t here = at_a + begin - a[i].begin, there = at_b + begin - b[k].begin;
      common.runs.push_back({{here, here + end - begin}, {there, there + end - begin}});
      common.count += end - begin;
    }
    if (a[i].end < b[k].end)
      at_a += a[i].count(), ++i;
    else
      at_b += b[k].count(), ++k;
  }
  return common;
}

}  // namespace starling
