#include "settings/micro_batch.h"

#include <algorithm>

#include "data/batches.h"

namespace starling {

std::vector<Batch> micro_batches(const Batch& share, int64_t most_tokens, const ParallelOptions& parallel, const ComputeCost& cost) {
  const int64_t tokens = share.target.count();
  if (tokens == 0) return {};
  if (parallel.pipeline == 1) return split(share, most_tokens);
  const int64_t pieces = std::max(parallel.passes(), (tokens + most_tokens - 1) / most_tokens);
  std::vector<Batch> batches;
  for (int64_t i = 0; i < pieces; ++i) {
    Batch batch =
        starling::slice_for_rank(share, static_cast<int>(i), static_cast<int>(pieces), cost.source_weight(), cost.target_weight());
    if (batch.target.count() > 0) batches.push_back(std::move(batch));
  }
  return batches;
}

}  // namespace starling
