#include "guard/loss_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace starling {
namespace {

constexpr double kShare = 1.0 / 8;                   // of an update in the averaged loss
constexpr double kSlowShare = 1.0 / 64;              // of an update in deviation and usual norm
constexpr double kLeastRise = 0.5, kMostRise = 1.5;  // nats
constexpr double kDeviations = 4, kMost = 3;         // of the limit; of what a single update may add to the mean deviation
constexpr int64_t kAfterWarmup = 100;

}  // namespace

double LossWatch::average() const { return weight_ > 0 ? sum_ / weight_ : 0; }
double LossWatch::limit() const { return std::clamp(kDeviations * deviation_, kLeastRise, kMostRise); }

bool LossWatch::calm() const {
  return updates_ >= kFewest && average() - best_ < limit() / 4 && (floor_ == 0 || average() < floor_ - kStallDepth);
}

Learning LossWatch::add(int64_t step, double loss, double gradient_norm) {
  // From one update to the next, so that a loss that falls fast does not count as one that varies. Outliers count for no more than a few
  // usual deviations, so that a run that diverges does not raise its own limit.
  if (updates_ > 0) {
    const double difference = std::abs(loss - last_) / std::sqrt(2.0);
    const double taken = updates_ < kFewest ? difference : std::min(difference, kMost * deviation_);
    const double share = std::max(kSlowShare, 1 / static_cast<double>(updates_));
    deviation_ += share * (taken - deviation_);
  }
  last_ = loss;
  sum_ += kShare * (loss - sum_);
  weight_ += kShare * (1 - weight_);
  last_norm_ = gradient_norm;
  const double log_norm = std::log(std::max(gradient_norm, 1e-30));
  log_norm_ += std::max(kSlowShare, 1 / static_cast<double>(updates_ + 1)) * (log_norm - log_norm_);
  ++updates_;
  const double now = average();
  if (updates_ == 1 || now < best_) {
    best_ = now;
    best_step_ = step;
  }
  if (updates_ == 1 || now < mark_ - kClearFall) {
    mark_ = now;
    mark_step_ = step;
  }
  if (updates_ < kFewest) return Learning::well;
  if (now - best_ > limit()) return Learning::diverging;
  const bool time = updates_ >= patience_ && step >= warmup_ + kAfterWarmup && 3 * (step - mark_step_) >= 2 * patience_;
  return floor_ > 0 && time && now > floor_ - kStallDepth ? Learning::stalled : Learning::well;
}

std::string LossWatch::text() const {
  return fmt::format("loss {:.3g} ({:.3g} at update {}), gradient norm {:.3g} (usually {:.3g})", average(), best_, best_step_, last_norm_,
                     std::exp(log_norm_));
}

void LossWatch::save(State& s) const {
  s.put("guard-updates", updates_);
  s.put("guard-sum", sum_);
  s.put("guard-weight", weight_);
  s.put("guard-deviation", deviation_);
  s.put("guard-last", last_);
  s.put("guard-best", best_);
  s.put("guard-best-step", best_step_);
  s.put("guard-mark", mark_);
  s.put("guard-mark-step", mark_step_);
  s.put("guard-log-norm", log_norm_);
}

void LossWatch::restore(const State& s) {
  if (!s.has("guard-updates")) return;
  updates_ = s.integer("guard-updates");
  sum_ = s.real("guard-sum");
  weight_ = s.real("guard-weight");
  deviation_ = s.real("guard-deviation");
  last_ = s.real("guard-last");
  best_ = s.real("guard-best");
  best_step_ = s.integer("guard-best-step");
  mark_ = s.real("guard-mark");
  mark_step_ = s.integer("guard-mark-step");
  log_norm_ = s.real("guard-log-norm");
}

}  // namespace starling
