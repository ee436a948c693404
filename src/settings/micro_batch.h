// How many target tokens are computed at once: as many as memory holds, which is chosen before the first update, since a process that
// outgrows its cgroup is killed without a word, and one that outgrows its card ends in the middle of an update.
#pragma once

#include <functional>
#include <string>

#include "base/batch.h"
#include "base/memory.h"
#include "replica/cost.h"
#include "settings/config.h"

namespace starling {

// What the configuration alone does not tell.
struct MicroBatchNeed {
  int64_t activation_bytes = 4;  // of one activation
  int64_t parameters = 0;
  int local_ranks = 1;  // that share the memory
  int64_t best = 4096;  // target tokens above which nothing gets faster: Backend::best_micro_batch
  // Bytes of each parameter that are taken later: of the host's memory gradient and moments, which nobody has touched yet; on a card
  // weights in the products' type.
  int64_t later_bytes = 3 * sizeof(float);
  bool card = false;
};

// Rough bytes of activations and their gradients per target token (with as many source tokens): what a micro-batch costs.
double bytes_per_token(const ModelConfig& model, int64_t activation_bytes, int64_t shards);

// Of the text, where R-Drop computes each token twice: train.micro-batch-tokens if that is set, else what half of the memory holds beside
// what else is taken later: 256 to need.best target tokens. `say` gets a line where memory made it fewer, and a warning where even 256 may
// be too many, or those that are asked for. ConfigError where a card cannot hold 256: there nothing else gives memory back.
int64_t micro_batch_tokens(const Config& config, const MicroBatchNeed& need, const UsableMemory& memory,
                           const std::function<void(const std::string&)>& say);

// A worker's share of a batch as it is computed: in pieces of at most so many target tokens; for a pipeline in as many as fill it, at
// least, which cost about the same.
std::vector<Batch> micro_batches(const Batch& share, int64_t most_tokens, const ParallelOptions& parallel, const ComputeCost& cost);

}  // namespace starling
