// The start of a run on every rank: rank 0 chooses vocabularies, data and first weights, the others get them.
#pragma once

#include "data/batches.h"
#include "run/run_parts.h"

namespace starling {

// Directory, vocabularies, model with its first weights, replica, tokens of the training text. Collective. Throws what cannot be trained,
// or continued, with as little work done as possible.
void set_up(RunParts& run);

// The order of the batches and the size of micro-batches, chosen when everything else has taken its memory. Collective.
void plan_batches(RunParts& run);

// ConfigError where this rank is to read a directory that it does not see: a stage of a model reads its part itself.
void require_seen(const RunParts& run, const std::string& directory);

// How a run cuts its data into batches of so many target tokens of all workers.
BatchOptions batch_options(const Config& config, int64_t batch_tokens, const Vocabularies& vocabularies);

}  // namespace starling
