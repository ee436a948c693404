#include "run/run_guard.h"

#include <cmath>

namespace starling {
namespace {

// Entropy of the frequencies of the target tokens, nats, from at most 16,384 pairs evenly over the text. 0 for text that is not there yet.
// Each rank counts for itself, which takes no communication and little time.
double token_entropy(const RunParts& run) {
  constexpr int64_t kMost = 16384;
  if (run.text) return 0;
  const TokenStore& store = run.tokens();
  std::vector<int64_t> counts(static_cast<size_t>(run.vocabularies->target().size()));
  const int64_t looked_at = std::min(store.size(), kMost);
  double all = 0;
  for (int64_t i = 0; i < looked_at; ++i) {
    PackedTokens source, target;
    store.append(store.size() * i / looked_at, source, target);
    for (const int32_t token : target.tokens) ++counts[static_cast<size_t>(token)];
    all += static_cast<double>(target.tokens.size());
  }
  double entropy = 0;
  for (const int64_t count : counts)
    if (count > 0) entropy -= static_cast<double>(count) / all * std::log(static_cast<double>(count) / all);
  return entropy;
}

}  // namespace

void RunGuard::restore(const State& s) {
  if (guard_) return guard_->restore(s);
  if (s.has("guard-factor") && s.real("guard-factor") != 1 && run_.first())
    run_.say(fmt::format(
        "the guard had lowered the learning rate to {:g} times the configured one; the guard is off now, so the configured one applies",
        s.real("guard-factor")));
}

// The loss of runs whose text changes, or that are not to lower it, says nothing; ranks that serve do not see all of it.
void RunGuard::set_up() {
  const Config& c = run_.config;
  const bool tells = c.data.stages.empty() && !run_.mixed() && run_.replicas() != Replicas::served;
  if (c.guard.mode == GuardMode::off || !tells) return;
  if (c.guard.mode == GuardMode::act && run_.replicas() != Replicas::equal)
    throw ConfigError(
        fmt::format("guard.mode act goes back to a state that all ranks have, but with strategy {} as configured each rank has a "
                    "state of its own; set guard.mode to warn",
                    c.strategy.name));
  const double warmup = warmup_of(run_.optimizer, static_cast<double>(schedule_end(run_))).updates;
  snapshot_.emplace(*run_.replica);
  guard_.emplace(c.guard, LossWatch(token_entropy(run_), std::llround(warmup), LossWatch::patience_of(run_.batch_tokens)),
                 Guard::Run{[this] { snapshot_->keep(); }, [this] { snapshot_->restore(); }});
  run_.replica->scale_rate([this](int64_t update) { return guard_->rate_factor(update); });
}

void RunGuard::begin() {
  if (!guard_) return;
  guard_->begin(run_.step());
  if (guard_->acts())
    run_.say(
        fmt::format("guard: goes back to a snapshot where the loss diverges, {} times at most; a snapshot every {} updates, {:.1f} MiB",
                    run_.config.guard.most_rescues, run_.config.guard.snapshot_every, static_cast<double>(snapshot_->bytes()) / (1 << 20)));
}

bool RunGuard::updated(const StepResult& result) {
  if (!guard_ || result.totals.tokens == 0) return false;
  const int64_t step = run_.step();
  const Guard::Verdict verdict = guard_->updated(step, result.totals.nll / result.totals.tokens, result.gradient_norm);
  tell(verdict, step);
  return verdict.went_back;
}

void RunGuard::not_finite(const DivergedError& error) {
  // Sparse exchanges may still be under way then.
  if (!guard_ || family_of(run_.config.strategy) == Family::sparse) throw error;
  const int64_t step = run_.step() + 1;
  tell(guard_->not_finite(step, error.what()), step);
}

void RunGuard::tell(const Guard::Verdict& verdict, int64_t from) {
  if (!run_.first() || (verdict.text.empty() && !verdict.went_back)) return;
  if (!verdict.text.empty()) run_.say(verdict.text);
  nlohmann::ordered_json event{{"type", "guard"}, {"step", from}, {"text", verdict.text}};
  if (verdict.went_back) {
    event["back_to"] = verdict.to;
    event["rate_factor"] = guard_->rate_factor(verdict.to + 1 + Guard::kRewarm);
    event["rescues"] = guard_->rescues();
  }
  run_.progress.event(event);
}

}  // namespace starling
