// What suits a few thousand pairs is not what suits millions: with the defaults of large corpora hardly anything is learned for minutes,
// and nothing says why. So keys that a configuration leaves open get the values that are the best known for the size of its corpus
// (docs/start/first-project.md), and others get advice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "settings/config.h"

namespace starling {

// The keys, "section.key", that are chosen by the corpus where nobody gives them.
std::vector<std::string> keys_by_corpus();

// Values for those of `open` that a new run of this configuration should have, by the sizes of its training files: for Transformers that
// maximise likelihood. A key that is missing keeps its default. Warm-up and learning rate are chosen together, and neither for batches that
// grow with the workers (strategy.batch, learning-rate-scaling) or with warmup-tokens; train.max-tokens is open where no end is given.
// train.warmup-share is chosen with them where minutes end the run. Empty for files that cannot be read, and in fine-tuning.
std::vector<Override> choose_by_corpus(const Config& config, const std::vector<std::string>& open);

// How a model was trained that another run begins with.
struct EarlierTraining {
  double learning_rate = 0;                           // its peak
  int64_t warmup = 0, updates = 0, batch_tokens = 0;  // updates; target tokens an update of all workers
};

// The same for a new run that begins with a model: batch and length by the size of the new text, the rate by how the model was trained, as
// far as that is known, the warm-up by the length. Each key by itself.
std::vector<Override> choose_for_fine_tuning(const Config& config, const std::vector<std::string>& open,
                                             const std::optional<EarlierTraining>& earlier);

// What the choices are for, in words.
std::string corpus_text(const Config& config);
std::string fine_tuning_text(const Config& config, const std::optional<EarlierTraining>& earlier);

// What was chosen for a configuration and why, as a line for people; "" where nothing was.
std::string choices_text(const Config& config);

// Estimated target tokens of an epoch of the training files, by their sizes and the characters that they begin with; 0 where there are
// none.
double estimated_epoch(const Config& config);

// What to try where a corpus of fewer than 100,000 pairs is passed more than three times before the warm-up of a Transformer ends; "" where
// that is not so.
std::string small_corpus_advice(const Config& config, int64_t pairs, int64_t updates_an_epoch);

}  // namespace starling
