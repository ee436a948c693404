// What a run inherits from its initial model (train.initial-model) or from the checkpoint that it resumes from, so that a configuration
// need not repeat it: architecture and vocabulary. Settings that the configuration gives all the same must agree.
// docs/guides/fine-tuning.md
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "settings/config.h"
#include "storage/state.h"

namespace starling {

// Like load_config, for a run: settings that neither the file nor the overrides give come from the run's newest checkpoint in train.output,
// else from train.initial-model, else from the vocabularies that exist already; the presets' defaults come last. Also throws what reading
// train.initial-model throws, if that path exists.
Config load_run_config(const std::string& path, const std::vector<Override>& overrides = {});

// Returns the lines of the configuration that the run of a checkpoint had; none of one of an older version.
std::vector<std::string> settings_of(const State& state);

// Like load_config, for commands that train new runs: settings left open are chosen by the corpus, as for a run (corpus_defaults.h).
Config load_new_config(const std::string& path, const std::vector<Override>& overrides);

// The same on every rank of a run, each with the file and the overrides of its host. Collective. Settings left open follow what rank 0
// finds on its disk, since other hosts may have disks of their own without the run and the model.
Config load_run_config(const std::string& path, const std::vector<Override>& overrides, Communicator& comm);

// Sets vocab.normalization to that of the vocabulary that a run in the directory `run` would find; does nothing if there is none.
void take_normalization(const GivenText& given, const std::string& run, Config& config);

// Throws ConfigError, showing both, unless `then` is the configuration's model; dropout, clip and init-bound may differ. The message begins
// with `where` and with `what`, which introduces `then`, and ends with `remedy`.
void require_same_model(const Config& config, ModelConfig then, const std::string& where, const char* what, const char* remedy);

}  // namespace starling
