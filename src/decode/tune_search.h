// The sweep of `starling tune-search`: decodes a text once for each pair of length and coverage penalty, and computes all metrics from that
// decoding. Both penalties only rank hypotheses, but which ones are found depends on them too, so passes share nothing.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "decode/translator.h"
#include "metrics/tokenizers.h"

namespace starling {

struct SweepOptions {
  std::vector<double> length_penalties{0, 0.2, 0.4, 0.6, 0.8, 1}, coverage_penalties{0, 0.2, 0.4, 0.6, 0.8, 1};
  std::string metric = "bleu";  // bleu | chrf: the metric to maximise
  BleuTokenizer tokenizer;      // for BLEU and the length ratio
};

// One setting and its results.
struct SearchTrial {
  double length_penalty = 0, coverage_penalty = 0;
  double bleu = 0, chrf = 0;  // 0 to 100
  double length_ratio = 0;    // words of translations over words of references, as BLEU counts them
  double seconds = 0;         // of decoding
  SearchWork work;
  bool own = false;  // the model's original setting

  double value(const std::string& metric) const { return metric == "chrf" ? chrf : bleu; }
};

// Returns the pairs (length penalty, coverage penalty) of the sweep: all combinations of the two lists in this order and then `base`'s own
// pair, unless it is among them, because nothing worse may replace it.
std::vector<std::pair<double, double>> sweep_settings(const SearchOptions& base, const SweepOptions& options);

// Runs one trial for each of sweep_settings, in this order, with `base`'s other options. Calls `done` after each. `seconds` is a clock.
// Throws DataError if sources and references differ in number or are empty.
std::vector<SearchTrial> sweep_search(Translator& translator, const SearchOptions& base, std::span<const std::string> sources,
                                      std::span<const std::string> references, const SweepOptions& options,
                                      const std::function<double()>& seconds, const std::function<void(const SearchTrial&)>& done = {});

// Returns the trial with the highest value of the metric, the first of equal ones. There must be one.
const SearchTrial& best_trial(std::span<const SearchTrial> trials, const std::string& metric);

// Returns a table for people of the trials of the two lists: length penalties in rows, coverage penalties in columns, the metric with two
// decimals.
std::string trial_table(std::span<const SearchTrial> trials, const std::string& metric);

// Returns the trials with keys in the order of the struct.
nlohmann::ordered_json trials_to_json(std::span<const SearchTrial> trials);

}  // namespace starling
