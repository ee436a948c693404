// Plans what `starling tune` tries: candidates around a configuration, and how many target tokens each of them gets. It is successive
// halving in which every run has a schedule that ends with the run, so that short runs are complete runs (Jamieson and Talwalkar 2016).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "settings/config.h"

namespace starling {

struct TuneCandidate {
  std::string name;            // never "own": the configuration's own values run in every rung
  double rate = 0;             // train.learning-rate
  std::vector<Override> keys;  // other differences from the configuration
};

struct TuneRung {
  int candidates;  // number, in addition to the configuration's own values
  int64_t tokens;  // target tokens of each run
  std::vector<int64_t> seeds;
};

// Returns the keys that can be tuned.
std::vector<std::string> tunable_keys();
// Throws ConfigError if any of the keys cannot be tuned.
void require_tunable(const std::vector<std::string>& keys);

// Returns the keys that are tuned by default. Short runs favour less regularisation (dropout and subword sampling), so these two keys are
// left out if a run of the last rung has less than a third of `run`, the target tokens of the configuration's own run (0: unknown).
std::vector<std::string> keys_by_length(int64_t run, int64_t last_rung);

/// Returns `count` candidates that differ from the configuration in `keys` (all tunable ones if empty). The values of each key are spread
/// evenly over the candidates and combined at random, as a function of `seed` alone. Throws ConfigError for keys that cannot be tuned.
std::vector<TuneCandidate> draw_candidates(const Config& config, const std::vector<std::string>& keys, int count, uint64_t seed);

/// Returns rungs that need `tokens` target tokens in total. A third of the candidates advances to a rung with three times as many tokens,
/// until at most two are left or there are three rungs; the last rung uses two seeds. Throws ConfigError if a first run would have fewer
/// than 50 updates of `batch` tokens.
std::vector<TuneRung> tune_rungs(double tokens, int candidates, int64_t batch);

// Returns the file's configuration with the keys of a tuning's best run, which sets train.warmup-tokens and train.max-tokens. The
// configuration's own warm-up and limits are dropped, because the best run did not have them. Throws ConfigError as loading does.
Config tuned_config(const std::string& file, const std::vector<Override>& keys);

// Returns the target tokens of all runs of a rung.
double rung_tokens(const TuneRung& rung);

}  // namespace starling
