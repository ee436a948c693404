#include "replica/r_drop.h"

#include <utility>

namespace starling {

Batch doubled(const Batch& batch, double r_drop) {
  constexpr int64_t kSecond = int64_t{1} << 31;  // the highest bit of a mask's key, which no sentence number reaches
  Batch twice;
  twice.r_drop = r_drop;
  twice.guide = batch.guide;
  twice.epoch = batch.epoch;
  twice.index = batch.index;
  for (int64_t b = 0; b < batch.target.sentences(); ++b)
    for (const int64_t copy : {int64_t{0}, kSecond}) {
      for (const auto& [from, to] : {std::pair(&batch.source, &twice.source), std::pair(&batch.target, &twice.target)})
        to->append(from->tokens.data() + from->offsets[b], from->tokens.data() + from->offsets[b + 1]);
      twice.sample_ids.push_back(batch.sample_ids[b] + copy);
      if (!batch.link_offsets.empty()) {
        if (twice.link_offsets.empty()) twice.link_offsets.push_back(0);
        twice.links.insert(twice.links.end(), batch.links.begin() + batch.link_offsets[b], batch.links.begin() + batch.link_offsets[b + 1]);
        twice.link_offsets.push_back(static_cast<int32_t>(twice.links.size()));
      }
      twice.weights.push_back(batch.weights.empty() ? 0.5f : batch.weights[b] / 2);
    }
  return twice;
}

}  // namespace starling
