// Chooses defaults by the size of the corpus. What suits a few thousand pairs does not suit millions: with the defaults for large corpora,
// a run on a small one learns hardly anything for minutes and does not say why. Keys that a configuration leaves open therefore get the
// best known values for the size of its corpus (docs/start/first-project.md), and others get advice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "settings/config.h"

namespace starling {

// Returns the keys, "section.key", that are chosen by the corpus unless they are given.
std::vector<std::string> keys_by_corpus();

// Returns values for those keys of `open` that a new run of this configuration should set, by the sizes of its training files; only for
// Transformers that maximise likelihood. Keys that are not returned keep their defaults. Warm-up and learning rate are chosen together, and
// neither is chosen for batches that grow with the workers (strategy.batch, learning-rate-scaling) or with warmup-tokens. train.max-tokens
// is open if no end is given; train.warmup-share is chosen too if minutes end the run. Returns nothing for files that cannot be read, and
// in fine-tuning. For a text from a pipe warm-up, learning rate, batch and schedule are chosen by the limit of the run, if it has one.
std::vector<Override> choose_by_corpus(const Config& config, const std::vector<std::string>& open);

// How the model was trained that a run starts from.
struct EarlierTraining {
  double learning_rate = 0;                           // its peak
  int64_t warmup = 0, updates = 0, batch_tokens = 0;  // updates; updates; target tokens per update, over all workers
};

// The same for a new run that starts from a model: batch and length by the size of the new text, learning rate by how the model was trained
// (if known), warm-up by the length. Each key is chosen independently.
std::vector<Override> choose_for_fine_tuning(const Config& config, const std::vector<std::string>& open,
                                             const std::optional<EarlierTraining>& earlier);

// Describe in words what the choices are for.
std::string corpus_text(const Config& config);
std::string fine_tuning_text(const Config& config, const std::optional<EarlierTraining>& earlier);

// Returns a line for people that says what was chosen for a configuration and why; "" if nothing was.
std::string choices_text(const Config& config);

// Estimates the target tokens per epoch of the training files from their sizes and their first characters; 0 if there are no files.
double estimated_epoch(const Config& config);

// Returns what to try if a Transformer's warm-up takes more than three epochs of a corpus of fewer than 100,000 pairs; "" otherwise.
std::string small_corpus_advice(const Config& config, int64_t pairs, int64_t updates_an_epoch);

}  // namespace starling
