// Chooses the size of micro-batches, in target tokens, to fit memory. It is chosen before the first update, since a process that outgrows
// its cgroup is killed without a message, and one that outgrows its card fails in the middle of an update.
#pragma once

#include <functional>
#include <string>

#include "base/batch.h"
#include "base/memory.h"
#include "replica/cost.h"
#include "settings/config.h"

namespace starling {

// What must be known beyond the configuration.
struct MicroBatchNeed {
  int64_t activation_bytes = 4;  // bytes of one activation
  int64_t parameters = 0;
  int local_ranks = 1;  // ranks that share the memory
  int64_t best = 4096;  // target tokens above which nothing gets faster: Backend::best_micro_batch
  // Bytes per parameter that will be allocated later: in host memory for gradient and moments, which have not been touched yet; on a card
  // for weights in the type of the matrix products.
  int64_t later_bytes = 3 * sizeof(float);
  bool card = false;
};

// Estimates the bytes of activations and their gradients per target token (with as many source tokens) of a micro-batch.
double bytes_per_token(const ModelConfig& model, int64_t activation_bytes, int64_t shards);

// Returns the target tokens of a micro-batch: train.micro-batch-tokens if that is set, otherwise what fits in half of the memory that is
// left after later allocations, 256 to need.best. With R-Drop, which computes each token twice, it counts tokens of the text. `say` gets a
// line if memory reduced the number, and a warning if even 256, or the number requested, may be too many. Throws ConfigError if a card
// cannot hold 256, since nothing else can free memory there.
int64_t micro_batch_tokens(const Config& config, const MicroBatchNeed& need, const UsableMemory& memory,
                           const std::function<void(const std::string&)>& say);

// Splits a worker's share of a batch into micro-batches of at most `most_tokens` target tokens; for a pipeline, into at least as many as
// fill it, of about equal cost.
std::vector<Batch> micro_batches(const Batch& share, int64_t most_tokens, const ParallelOptions& parallel, const ComputeCost& cost);

}  // namespace starling
