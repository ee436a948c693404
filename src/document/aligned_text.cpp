#include "document/aligned_text.h"

#include <algorithm>

namespace starling {

AlignedText linked_through(const AlignedText& first, AlignedText second) {
  std::vector<AlignedText::Link> order = first.links;
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.target.begin < b.target.begin; });
  std::vector<AlignedText::Link> links;
  for (const auto& [middle, target] : second.links) {
    // Targets are the bytes of tokens, which do not overlap, so few of them lie between the first that may share bytes and the last.
    auto l =
        std::partition_point(order.begin(), order.end(), [begin = middle.begin](const auto& link) { return link.target.end <= begin; });
    int64_t most = 0;
    Range source{};
    for (; l != order.end() && l->target.begin < middle.end; ++l) {
      const int64_t shared = std::min(middle.end, l->target.end) - std::max(middle.begin, l->target.begin);
      if (shared <= most) continue;
      most = shared;
      source = l->source;
    }
    if (most > 0) links.push_back({source, target});
  }
  second.links = std::move(links);
  return second;
}

}  // namespace starling
