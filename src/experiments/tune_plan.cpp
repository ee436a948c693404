#include "experiments/tune_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "config/suggestion.h"

namespace starling {
namespace {

constexpr int64_t kLeastUpdates = 50;
constexpr int kFactor = 3;  // factor between rungs, of candidates and of tokens
constexpr size_t kRungs = 3;
constexpr int64_t kLong = 3;  // a run is long if it has more than this multiple of the last rung's tokens

// Returns the values of a key that candidates try, as text, including the configuration's own.
std::vector<std::string> values_of(const Config& c, const std::string& key) {
  std::vector<std::string> values;
  const auto add = [&](const auto& value) {
    if (const std::string text = fmt::format("{}", value); std::find(values.begin(), values.end(), text) == values.end())
      values.push_back(text);
  };
  if (key == "train.learning-rate") {
    for (const double doublings : {0.0, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0})
      add(fmt::format("{:.3g}", c.train.optimizer.learning_rate * std::exp2(doublings)));
  } else if (key == "train.batch-tokens") {
    for (const int64_t eighths : {8, 4, 16, 32}) add(std::max<int64_t>(1, c.train.batch_tokens * eighths / 8));
  } else if (key == "train.optimizer") {
    add(word(c.train.optimizer.optimizer));
    if (traits_of(c.train.optimizer.optimizer).adam) add("muon");
  } else if (key == "model.dropout") {
    for (const double p : {c.model.dropout, 0.1, 0.15, 0.2, 0.3, 0.4}) add(p);
  } else if (key == "data.subword-alpha") {
    for (const double alpha : {c.data.subword_alpha, 0.0, c.vocab.training.type == "bpe" ? 0.1 : 0.3}) add(alpha);
  }
  return values;
}

}  // namespace

std::vector<std::string> tunable_keys() {
  return {"train.learning-rate", "train.batch-tokens", "train.optimizer", "model.dropout", "data.subword-alpha"};
}

void require_tunable(const std::vector<std::string>& keys) {
  const std::vector<std::string> tunable = tunable_keys();
  for (const std::string& key : keys)
    if (std::find(tunable.begin(), tunable.end(), key) == tunable.end())
      throw ConfigError(fmt::format("--keys {}: cannot be tuned{}; choose from {}", in_quotes(key), did_you_mean(key, tunable),
                                    fmt::join(tunable, ", ")));
}

std::vector<std::string> keys_by_length(int64_t run, int64_t last_rung) {
  std::vector<std::string> keys = tunable_keys();
  if (run > kLong * last_rung)
    std::erase_if(keys, [](const std::string& key) { return key == "model.dropout" || key == "data.subword-alpha"; });
  return keys;
}

std::vector<TuneCandidate> draw_candidates(const Config& config, const std::vector<std::string>& asked, int count, uint64_t seed) {
  require_tunable(asked);
  const std::vector<std::string> keys = asked.empty() ? tunable_keys() : asked;
  std::vector<TuneCandidate> candidates(static_cast<size_t>(count));
  for (size_t i = 0; i < candidates.size(); ++i)
    candidates[i] = {fmt::format("candidate-{}", i + 1), config.train.optimizer.learning_rate, {}};
  for (size_t k = 0; k < keys.size(); ++k) {
    const std::vector<std::string> values = values_of(config, keys[k]);
    std::vector<size_t> dealt(candidates.size());
    for (size_t i = 0; i < dealt.size(); ++i) dealt[i] = i % values.size();
    Random random(seed, k);
    for (size_t i = dealt.size(); i > 1; --i) std::swap(dealt[i - 1], dealt[random.below(i)]);
    for (size_t i = 0; i < candidates.size(); ++i) {
      const std::string& value = values[dealt[i]];
      if (keys[k] == "train.learning-rate")
        candidates[i].rate = std::stod(value);
      else if (dealt[i] > 0)
        candidates[i].keys.emplace_back(keys[k], value);
    }
  }
  // No run is made twice: a candidate equal to the configuration or to an earlier one gets a rate a quarter of an octave higher.
  if (std::find(keys.begin(), keys.end(), "train.learning-rate") != keys.end()) {
    std::set<std::pair<double, std::vector<Override>>> taken{{config.train.optimizer.learning_rate, {}}};
    for (TuneCandidate& candidate : candidates)
      while (!taken.insert({candidate.rate, candidate.keys}).second)
        candidate.rate = std::stod(fmt::format("{:.3g}", candidate.rate * std::exp2(0.25)));
  }
  return candidates;
}

Config tuned_config(const std::string& file, const std::vector<Override>& keys) {
  Config c = load_config(file, keys);
  TrainConfig& t = c.train;
  const TrainConfig standard;
  t.max_steps = standard.max_steps;
  t.max_epochs = standard.max_epochs;
  t.max_minutes = standard.max_minutes;
  for (const char* name : {"train.max-steps", "train.max-epochs", "train.max-minutes"}) c.named.erase(name);
  if (t.warmup_tokens > 0) {
    t.optimizer.warmup = standard.optimizer.warmup;
    t.optimizer.warmup_share = standard.optimizer.warmup_share;
    for (const char* name : {"train.warmup", "train.warmup-share"}) c.named.erase(name);
  }
  return c;
}

double rung_tokens(const TuneRung& rung) {
  return static_cast<double>(rung.tokens) * (rung.candidates + 1) * static_cast<double>(rung.seeds.size());
}

std::vector<TuneRung> tune_rungs(double tokens, int candidates, int64_t batch) {
  std::vector<TuneRung> rungs;
  for (int left = candidates, share = 1;; left = (left + kFactor - 1) / kFactor, share *= kFactor) {
    rungs.push_back({left, share, {1}});
    if (left <= 2 || rungs.size() == kRungs) break;
  }
  rungs.back().seeds = {1, 2};
  double units = 0;
  for (const TuneRung& rung : rungs) units += rung_tokens(rung);
  const auto unit = static_cast<int64_t>(tokens / units);
  if (unit < kLeastUpdates * batch)
    throw ConfigError(
        fmt::format("the budget gives each of the first {} runs {:.0f} updates, too few to tell anything; give about {:.1f} times as much, "
                    "or fewer --candidates",
                    candidates + 1, static_cast<double>(unit) / static_cast<double>(batch),
                    std::ceil(10.0 * kLeastUpdates * static_cast<double>(batch) / std::max<double>(1, static_cast<double>(unit))) / 10));
  for (TuneRung& rung : rungs) rung.tokens *= unit;
  return rungs;
}

}  // namespace starling
