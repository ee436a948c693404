#include "run/post_update_actions.h"

#include <algorithm>

namespace starling {
namespace {

constexpr int64_t kTimes = 10;  // in a run, at least
constexpr Distances kUsual{100, 1000, 1000};
// Shares of the time: each is counted from the update at which the one before was due, so that a little less than a tenth makes ten.
constexpr double kReports = 0.05, kOthers = 0.09;
constexpr double kNever = 2;
constexpr double kReportMinutes = 5, kCheckpointMinutes = 30;  // at most
constexpr double kTraining = 3;                                // times what a validation took, before the next
constexpr double kQuarter = 0.25;                              // of the time, at most, for all validations and the one at the end

}  // namespace

int64_t last_update(const TrainConfig& c, int64_t batch_tokens) {
  const int64_t limit = step_limit(c);
  return c.max_tokens > 0 ? std::clamp<int64_t>((c.max_tokens + batch_tokens / 2) / batch_tokens, 1, limit) : limit;
}

Distances distances(const Config& config, int64_t end) {
  const auto choose = [&](int64_t given, int64_t usual) { return given > 0 ? given : std::min(usual, std::max<int64_t>(1, end / kTimes)); };
  return {choose(config.log.every, kUsual.reports), choose(config.valid.every, kUsual.validates),
          choose(config.checkpoint.every, kUsual.saves)};
}

PostUpdateActions actions_after(const Config& config, const Distances& every, int64_t step, int64_t taken, int64_t taken_before) {
  const auto spaced = [&](int64_t n) { return taken / n > taken_before / n; };
  const int64_t compares = config.strategy.check_every;
  PostUpdateActions due;
  due.reports = step % every.reports == 0 || step == 1;  // the first shows at once that it runs
  due.validates = config.valid.enabled() && spaced(every.validates);
  due.compares = compares > 0 && step % compares == 0;
  due.saves = spaced(every.saves);
  return due;
}

double shared_minutes(const Config& config) { return config.train.max_minutes > 0 ? config.train.max_minutes : kMostMinutes; }

ActionsByTime::ActionsByTime(const Config& config) : minutes_(shared_minutes(config)), validates_(config.valid.enabled()) {
  if (config.train.max_minutes > 0) {
    if (config.log.every == 0) reports_.distance = std::min(kReports, kReportMinutes / minutes_);
    if (config.valid.every == 0) validations_.distance = kOthers;
    if (config.checkpoint.every == 0) saves_.distance = std::min(kOthers, kCheckpointMinutes / minutes_);
  }
  if (const double given = config.checkpoint.minutes / minutes_; given > 0)
    saves_.distance = saves_.distance > 0 ? std::min(saves_.distance, given) : given;
}

bool ActionsByTime::asked() const { return reports_.distance > 0 || (validates_ && validations_.distance > 0) || saves_.distance > 0; }

void ActionsByTime::pass(Mark& mark, bool& due, double gone) {
  if (mark.distance == 0) return;
  if (mark.next == 0) mark.next = gone + mark.distance;
  due = due || gone >= mark.next;
  if (due) mark.next = gone + mark.distance;
}

void ActionsByTime::add(PostUpdateActions& due, double gone) {
  if (validated_at_ >= 0 && validations_.next > 0) {
    const double took = gone - validated_at_;
    validated_ += took;
    const bool room = validated_ + 2 * took <= kQuarter;  // for another one beside that of the end
    validations_.next = room ? std::max(validations_.next, gone + kTraining * took) : kNever;
  }
  pass(reports_, due.reports, gone);
  if (validates_) pass(validations_, due.validates, gone);
  pass(saves_, due.saves, gone);
  validated_at_ = due.validates ? gone : -1;
}

void ActionsByTime::save(State& s) const {
  s.put("shared-minutes", minutes_);
  s.put("next-report", reports_.next);
  s.put("next-validation", validations_.next);
  s.put("validated-share", validated_);
  s.put("validated-at", validated_at_);
  s.put("next-checkpoint", saves_.next);
}

void ActionsByTime::restore(const State& s) {
  if (!s.has("shared-minutes") || s.real("shared-minutes") != minutes_) return;
  reports_.next = s.real("next-report");
  validations_.next = s.real("next-validation");
  validated_ = s.has("validated-share") ? s.real("validated-share") : 0;
  validated_at_ = s.has("validated-at") ? s.real("validated-at") : -1;
  saves_.next = s.real("next-checkpoint");
}

}  // namespace starling
