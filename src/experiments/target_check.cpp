#include "experiments/target_check.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "evaluation/model_selector.h"

namespace starling {
namespace {

constexpr int64_t kFewUpdates = 50;  // during the first updates, rates are still warming up and losses fall with every strategy
constexpr double kLearned = 0.99;    // the last cross-entropy must be below this multiple of the first one

bool trained(const RaceResult& r) { return !r.diverged && !r.curve.empty(); }

bool at_first_validation(const RaceResult& r, const RaceTarget& target, double value) {
  const auto score = r.curve.front().scores.find(target.metric);
  return score != r.curve.front().scores.end() && (score->second == value || better_score(target.metric, score->second, value));
}

// Returns why one worker's run is not a basis for comparison, or "".
std::string said_by(const RaceResult& one) {
  if (one.curve.back().step < kFewUpdates)
    return fmt::format("one worker made {} updates, too few to tell strategies apart; raise race.tokens for {} and more",
                       one.curve.back().step, kFewUpdates);
  const auto &first = one.curve.front().scores, &last = one.curve.back().scores;
  const auto from = first.find("cross-entropy"), to = last.find("cross-entropy");
  if (one.curve.size() > 1 && from != first.end() && to != last.end() && !(to->second < kLearned * from->second))
    return fmt::format(
        "one worker learned nothing (cross-entropy {:.4f} at its first validation, {:.4f} at its last); raise race.tokens, or "
        "train.learning-rate, or lower train.warmup",
        from->second, to->second);
  return "";
}

}  // namespace

std::string meaningless_target(const RaceResults& results) {
  const RaceTarget& target = results.recipe().targets.front();
  bool any = false, all_at_once = true;
  for (const RaceResult& r : results.results()) {
    if (!trained(r)) continue;
    if (r.arm == results.recipe().baseline.name)
      if (const std::string reason = said_by(r); !reason.empty()) return reason;
    const double value = results.target_value(target, r.seed);
    if (!std::isfinite(value)) continue;
    if (value <= 0 && better_score(target.metric, 1, 0))
      return fmt::format("the target is {} {:g}, which an untrained model has; raise race.tokens, or name another target", target.metric,
                         value);
    any = true;
    all_at_once = all_at_once && at_first_validation(r, target, value);
  }
  if (any && all_at_once)
    return fmt::format(
        "every run reaches the target ({}) by its first validation, so that the times are those of the validations; lower "
        "race.validate-every, or name a better value",
        target_text(target));
  return "";
}

}  // namespace starling
