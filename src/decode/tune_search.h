// The sweep of `starling tune-search`: a text is decoded once for each pair of length and coverage penalty, and all metrics come from that
// one decoding. Both penalties only rank hypotheses, but which ones are found depends on them too, so nothing is shared between passes.
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
  std::string metric = "bleu";  // bleu | chrf: what is best
  BleuTokenizer tokenizer;      // of BLEU and of the length ratio
};

// One setting and what it gave.
struct SearchTrial {
  double length_penalty = 0, coverage_penalty = 0;
  double bleu = 0, chrf = 0;  // 0 to 100
  double length_ratio = 0;    // words of the translations over words of the references, as BLEU counts them
  double seconds = 0;         // of decoding
  SearchWork work;
  bool own = false;  // the setting that the model had

  double value(const std::string& metric) const { return metric == "chrf" ? chrf : bleu; }
};

// The pairs (length penalty, coverage penalty) of the sweep: each of the one list with each of the other, in this order, and then `base`'s
// own, unless it is among them: nothing may replace it that is worse.
std::vector<std::pair<double, double>> sweep_settings(const SearchOptions& base, const SweepOptions& options);

// One trial for each of sweep_settings, in this order; the other options are `base`'s. `done` is called after each.
// `seconds` is a clock. DataError when sources and references differ in number or are none.
std::vector<SearchTrial> sweep_search(Translator& translator, const SearchOptions& base, std::span<const std::string> sources,
                                      std::span<const std::string> references, const SweepOptions& options,
                                      const std::function<double()>& seconds, const std::function<void(const SearchTrial&)>& done = {});

// The trial with the highest value of the metric, of equal ones the first; there must be one.
const SearchTrial& best_trial(std::span<const SearchTrial> trials, const std::string& metric);

// Of the trials of the two lists: rows of length penalties, columns of coverage penalties, the metric with two decimals; for people.
std::string trial_table(std::span<const SearchTrial> trials, const std::string& metric);

// The trials with their keys in the order of the struct.
nlohmann::ordered_json trials_to_json(std::span<const SearchTrial> trials);

}  // namespace starling
