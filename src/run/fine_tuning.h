// What a run takes over from the model that it begins with (train.initial-model) or goes on from, so that a configuration need not
// repeat it: architecture and vocabulary. What is given all the same must agree. docs/guides/fine-tuning.md
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "settings/config.h"

namespace starling {

// Like load_config, for a run: what the file and the overrides leave open is that of the run's newest checkpoint in train.output, else of
// train.initial-model, else of the vocabularies that are there; the presets' defaults come after that. Also throws what reading
// train.initial-model throws, if there is such a path.
Config load_run_config(const std::string& path, const std::vector<Override>& overrides = {});

// Like load_config, for what trains new runs: what is left open is chosen by the corpus, as for a run (corpus_choices.h).
Config load_new_config(const std::string& path, const std::vector<Override>& overrides);

// The same for every rank of a run, each with the file and the overrides of its host; collective. What they leave open is what rank 0 finds
// on its disk, since others may have a disk of their own without the run and the model.
Config load_run_config(const std::string& path, const std::vector<Override>& overrides, Communicator& comm);

// Sets vocab.normalization to that of the vocabulary that a run in this directory would find; nothing if there is none.
void take_normalization(const GivenText& given, const std::string& run, Config& config);

// ConfigError that shows both, unless `then` is the configuration's model; dropout, clip and init-bound may differ. The message begins
// with `where` and `what` (of `then`) and ends with `remedy`.
void require_same_model(const Config& config, ModelConfig then, const std::string& where, const char* what, const char* remedy);

}  // namespace starling
