// What `starling tune` tries: candidates around a configuration, and how many target tokens each of them is worth. Successive halving in
// which every run has a schedule that ends where the run does, so that short runs are whole runs (Jamieson and Talwalkar 2016).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "settings/config.h"

namespace starling {

struct TuneCandidate {
  std::string name;            // "own" is not among them: the configuration's own values run in every rung
  double rate = 0;             // train.learning-rate
  std::vector<Override> keys;  // what else differs from the configuration
};

struct TuneRung {
  int candidates;  // besides the configuration's own values
  int64_t tokens;  // target tokens of each run
  std::vector<int64_t> seeds;
};

// The keys that can be tuned.
std::vector<std::string> tunable_keys();
// ConfigError if there are others among them.
void require_tunable(const std::vector<std::string>& keys);

// Those that are tuned where nobody asks for any. Short runs prefer less of what keeps a model from learning its text by heart, dropout and
// subword sampling: these stay as they are where a run of the last rung has less than a third of `run`, the target tokens of the
// configuration's own run (0: unknown).
std::vector<std::string> keys_by_length(int64_t run, int64_t last_rung);

/// `count` candidates that differ from the configuration in `keys` (all tunable ones if empty). The values of each key are spread evenly
/// over the candidates and combined by chance, a function of `seed` alone. ConfigError for keys that are not tunable.
std::vector<TuneCandidate> draw_candidates(const Config& config, const std::vector<std::string>& keys, int count, uint64_t seed);

/// Rungs that need `tokens` target tokens in all: a third of the candidates goes on to three times as many tokens, until at most two are
/// left or there are three rungs; the last rung has two seeds. ConfigError if a first run would have fewer than 50 updates of `batch`.
std::vector<TuneRung> tune_rungs(double tokens, int candidates, int64_t batch);

// The configuration of the file with the keys of a tuning's best run, which has train.warmup-tokens and ends by train.max-tokens: without
// the configuration's own warm-up and limits, which the best run did not have. ConfigError as for files.
Config tuned_config(const std::string& file, const std::vector<Override>& keys);

// Of a rung, target tokens of all its runs.
double rung_tokens(const TuneRung& rung);

}  // namespace starling
