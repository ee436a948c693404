#include "train/validation.h"

#include <algorithm>
#include <chrono>

#include "data/batches.h"
#include "text/metrics.h"

namespace starling {

namespace {
constexpr size_t kLongest = 1000;  // tokens a side
}

SearchOptions search_options(const ValidConfig& c) {
  return {c.beam, c.length_penalty, c.max_length_factor, c.max_length_offset, 1, false};
}

Validator::Validator(const ValidConfig& config, const Vocabularies& vocabularies) : config_(config), vocabularies_(vocabularies) {
  std::vector<EncodedPair> pairs;
  PairReader reader({config.source, config.target, "", 1});
  std::string_view source, target;
  while (reader.next(source, target)) {
    sources_.emplace_back(source), references_.emplace_back(target);
    pairs.push_back(encode_pair(vocabularies.source(), vocabularies.target(), source, target));
    // As long as the translator takes; attention's memory grows with the square of the length.
    for (auto* side : {&pairs.back().source, &pairs.back().target})
      if (side->size() > kLongest) side->resize(kLongest), side->back() = vocabularies.sizes().end, ++truncated_;
  }
  if (pairs.empty())
    throw DataError(fmt::format("{}: no sentences to validate on; give another file or remove valid.source", config.source));
  batches_ = make_batches(pairs, config.batch_tokens);
}

double Validator::cross_entropy(Model& model) const {
  LossSums total;
  Arena arena;
  for (const Batch& batch : batches_) {
    arena.release({});
    Tape tape(model.parameters(), arena, false);
    const LossSums sums = model.loss(tape, batch, 0.0);
    total.nll += sums.nll, total.tokens += sums.tokens;
  }
  return total.nll / static_cast<double>(std::max<int64_t>(total.tokens, 1));
}

Validator::Result Validator::run(Model& model) const {
  const auto start = std::chrono::steady_clock::now();
  Result result;
  std::vector<std::string> hypotheses;
  const std::vector<std::vector<std::string>> references{references_};
  for (const std::string& metric : config_.metrics) {
    if (metric == "cross-entropy") {
      result.scores.emplace_back(metric, cross_entropy(model));
      continue;
    }
    if (hypotheses.empty()) {
      Translator translator(model, vocabularies_, search_options(config_), 128);
      for (auto& n_best : translator.translate(sources_)) hypotheses.push_back(std::move(n_best.front().text));
      const size_t at = hypotheses.size() / 3;
      result.example = fmt::format("{} => {} (reference: {})", sources_[at], hypotheses[at], references_[at]);
    }
    result.scores.emplace_back(metric, evaluate(metric, hypotheses, references).score);
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

bool Validator::better(const std::string& metric, double a, double b) {
  return metric == "cross-entropy" || metric == "ter" ? a < b : a > b;
}

}  // namespace starling
