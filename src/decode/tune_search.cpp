#include "decode/tune_search.h"

#include <algorithm>

#include "base/ordering.h"
#include "metrics/metrics.h"

namespace starling {
std::vector<std::pair<double, double>> sweep_settings(const SearchOptions& base, const SweepOptions& options) {
  std::vector<std::pair<double, double>> settings;
  for (const double alpha : options.length_penalties)
    for (const double beta : options.coverage_penalties) settings.emplace_back(alpha, beta);
  const std::pair own(base.length_penalty, base.coverage_penalty);
  if (std::find(settings.begin(), settings.end(), own) == settings.end()) settings.push_back(own);
  return settings;
}

std::vector<SearchTrial> sweep_search(Translator& translator, const SearchOptions& base, std::span<const std::string> sources,
                                      std::span<const std::string> references, const SweepOptions& options,
                                      const std::function<double()>& seconds, const std::function<void(const SearchTrial&)>& done) {
  const std::vector<std::vector<int32_t>> encoded = translator.encode(sources);
  std::vector<SearchTrial> trials;
  for (const auto& [alpha, beta] : sweep_settings(base, options)) {
    SearchOptions search = base;
    search.length_penalty = alpha;
    search.coverage_penalty = beta;
    search.n_best = 1;
    translator.set_search(search);
    const SearchWork before = translator.work();
    const double start = seconds();
    std::vector<std::string> hypotheses;
    for (auto& n_best : translator.translate_encoded(encoded)) hypotheses.push_back(std::move(n_best.front().text));
    SearchTrial t{.length_penalty = alpha, .coverage_penalty = beta, .seconds = seconds() - start};
    t.own = alpha == base.length_penalty && beta == base.coverage_penalty;
    t.work = {translator.work().steps - before.steps, translator.work().rows - before.rows};
    const MetricScore bleu = corpus_bleu(hypotheses, references, {.tokenizer = options.tokenizer});
    t.bleu = bleu.score;
    t.length_ratio = bleu.length_ratio;
    t.chrf = corpus_chrf(hypotheses, references).score;
    trials.push_back(t);
    if (done) done(t);
  }
  return trials;
}

const SearchTrial& best_trial(std::span<const SearchTrial> trials, const std::string& metric) {
  CHECK(!trials.empty(), "no trials");
  const std::string other = metric == "chrf" ? "bleu" : "chrf";
  return *std::max_element(trials.begin(), trials.end(), [&](const SearchTrial& a, const SearchTrial& b) {
    for (const std::string& m : {metric, other})
      if (less_nan_lowest(a.value(m), b.value(m)) || less_nan_lowest(b.value(m), a.value(m)))
        return less_nan_lowest(a.value(m), b.value(m));
    return !a.own && b.own;
  });
}

std::string trial_table(std::span<const SearchTrial> trials, const std::string& metric) {
  std::string head = fmt::format("{:<12}", metric == "chrf" ? "chrF" : "BLEU"), body;
  for (size_t i = 0; i < trials.size(); ++i) {
    const SearchTrial& t = trials[i];
    if (t.length_penalty == trials[0].length_penalty) head += fmt::format("{:>12}", fmt::format("beta {}", t.coverage_penalty));
    if (i == 0 || t.length_penalty != trials[i - 1].length_penalty)
      body += fmt::format("\n{:<12}", fmt::format("alpha {}", t.length_penalty));
    body += fmt::format("{:12.2f}", t.value(metric));
  }
  return head + body + "\n";
}

nlohmann::ordered_json trials_to_json(std::span<const SearchTrial> trials) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const SearchTrial& t : trials)
    list.push_back({{"length_penalty", t.length_penalty},
                    {"coverage_penalty", t.coverage_penalty},
                    {"bleu", t.bleu},
                    {"chrf", t.chrf},
                    {"length_ratio", t.length_ratio},
                    {"seconds", t.seconds},
                    {"decoder_rows", t.work.rows}});
  return list;
}

}  // namespace starling
