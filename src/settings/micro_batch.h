// Splits a share of a batch into micro-batches.
#pragma once

#include <vector>

#include "base/batch.h"
#include "replica/cost.h"
#include "settings/config.h"

namespace starling {

// Splits a worker's share of a batch into micro-batches of at most `most_tokens` target tokens; for a pipeline, into at least as many as
// fill it, of about equal cost.
std::vector<Batch> micro_batches(const Batch& share, int64_t most_tokens, const ParallelOptions& parallel, const ComputeCost& cost);

}  // namespace starling
