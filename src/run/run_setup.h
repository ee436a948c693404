// The start of a run on every rank: rank 0 chooses vocabularies, data and initial weights, and the others receive them.
#pragma once

#include "data/batches.h"
#include "run/run_parts.h"

namespace starling {

// Creates the directory, the vocabularies, the model with its initial weights, the replica and the tokens of the training text. Collective.
// Throws, with as little work done as possible, if the run cannot be trained or continued.
void set_up(RunParts& run);

// Plans the order of the batches, and finds the largest ones.
void plan_batches(RunParts& run);

// Returns how a run cuts its data into batches; batch_tokens: target tokens of all workers.
BatchOptions batch_options(const Config& config, int64_t batch_tokens, const Vocabularies& vocabularies);

}  // namespace starling
