// A warm-up for millions of pairs is most of a run on few: then hardly anything is learned for minutes, and nothing says why. So a
// Transformer whose warm-up and learning rate are left open gets those of its corpus, and others get advice.
#pragma once

#include <string>

#include "train/config.h"

namespace starling {

// Sets train.warmup to one epoch of the training files, as their sizes let it be estimated, between 400 and 4,000 updates, and
// train.learning-rate to where the default schedule of 4,000 updates would be then: after the warm-up all run alike. Leaves alone what is
// no new Transformer with Adam, the schedule inverse-sqrt and likelihood as its objective, batches that grow with the workers
// (strategy.batch, learning-rate-scaling), warmup-tokens, and files that cannot be read.
void warm_up_by_corpus(Config& config);

// What to try where a corpus of fewer than 100,000 pairs is passed more than three times before the warm-up of a Transformer ends; "" where
// that is not so.
std::string small_corpus_advice(const Config& config, int64_t pairs, int64_t updates_an_epoch);

}  // namespace starling
