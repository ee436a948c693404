#include "guard/guard.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace starling {

void Guard::begin(int64_t step) {
  if (!acts()) return;
  // A run that resumes where its loss was high, or had not begun to fall, is watched from here on.
  if (!watch_.calm()) watch_ = watch_.restarted();
  keep(step);
}

void Guard::keep(int64_t step) {
  run_.keep();
  kept_watch_ = watch_;
  kept_step_ = step;
}

void Guard::saved(int64_t step) {
  if (acts() && watch_.calm()) keep(step);
}

double Guard::rate_factor(int64_t step) const {
  if (rewarm_from_ < 0) return factor_;
  return factor_ * std::clamp(static_cast<double>(step - rewarm_from_) / static_cast<double>(kRewarm), 0.0, 1.0);
}

Guard::Verdict Guard::updated(int64_t step, double loss, double gradient_norm) {
  if (config_.mode == GuardMode::off) return {};
  if (probing_) {
    probing_ = false;
    if (watch_.far_above(loss)) return skip(fmt::format("its loss is {:.3g} where {:.3g} was usual", loss, watch_.average()));
    skipped_ = 0;
  }
  const Learning how = watch_.add(step, loss, gradient_norm);
  if (how == Learning::well) {
    if (told_ && watch_.calm()) told_ = false;
    if (acts() && step % config_.snapshot_every == 0 && watch_.calm()) keep(step);
    return {};
  }
  const bool stalled = how == Learning::stalled;
  if (acts())
    return rescue(step, how,
                  stalled ? fmt::format("the run does not learn: its loss is still that of guessing by frequency; {}", watch_.text())
                          : fmt::format("the loss rises: {}", watch_.text()));
  if (told_) return {};
  told_ = true;
  constexpr const char* kHelp = "a lower train.learning-rate or a longer train.warmup helps; guard.mode act goes back by itself";
  return {false, 0,
          stalled ? fmt::format("warning: the run does not learn: its loss is still that of guessing by frequency; {}; {}", watch_.text(),
                                kHelp)
                  : fmt::format("warning: the loss rises: {}; {}", watch_.text(), kHelp)};
}

// Skips the first batch after a return. The parameters are those of a run that learned well, so the batch is at fault.
Guard::Verdict Guard::skip(const std::string& why) {
  if (++skipped_ > kMostSkipped)
    throw DivergedError(
        fmt::format("the loss of {} batches in a row is far above that of the batches before them; look at the text that they are made of",
                    kMostSkipped));
  const bool tell = skipped_ == 1 || skipped_ % 50 == 0;
  return go_back(tell ? fmt::format("{}: batch skipped ({} in a row)", why, skipped_) : "");
}

Guard::Verdict Guard::not_finite(int64_t step, const std::string& why) {
  if (!acts()) throw DivergedError(why);
  if (probing_) return skip(why);
  return rescue(step, Learning::diverging, why);
}

Guard::Verdict Guard::rescue(int64_t step, Learning how, const std::string& why) {
  if (rescues_ == config_.most_rescues)
    throw DivergedError(
        fmt::format("{}; the run has gone back {} times already (guard.most-rescues): lower train.learning-rate, or look "
                    "at the training text",
                    why, rescues_));
  const bool again = returned_to_ >= 0 && step - returned_to_ <= kSoon;
  ++rescues_;
  std::string what = "with the same learning rate and the batches that follow";
  if (how == Learning::stalled || again) {
    factor_ *= how == Learning::stalled ? kLowerStalled : kLower;
    rewarm_from_ = kept_step_;
    what = fmt::format("with {:g} times the learning rate, which warms up in {} updates", factor_, kRewarm);
  }
  return go_back(fmt::format("{}; the run goes back from update {} to update {}, {} (rescue {} of {})", why, step, kept_step_, what,
                             rescues_, config_.most_rescues));
}

Guard::Verdict Guard::go_back(const std::string& text) {
  run_.go_back();
  watch_ = kept_watch_;
  returned_to_ = kept_step_;
  probing_ = true;
  return {true, kept_step_, text.empty() ? "" : "guard: " + text};
}

void Guard::save(State& s) const {
  if (config_.mode == GuardMode::off) return;
  watch_.save(s);
  s.put("guard-rescues", rescues_);
  s.put("guard-skipped", skipped_);
  s.put("guard-since", returned_to_);
  s.put("guard-rewarm", rewarm_from_);
  s.put("guard-factor", factor_);
  s.put("guard-probing", int64_t{probing_});
  s.put("guard-told", int64_t{told_});
}

void Guard::restore(const State& s) {
  if (!s.has("guard-rescues")) return;
  watch_.restore(s);
  skipped_ = s.integer("guard-skipped");
  returned_to_ = s.integer("guard-since");
  rewarm_from_ = s.integer("guard-rewarm");
  factor_ = s.real("guard-factor");
  probing_ = s.integer("guard-probing") != 0;
  told_ = s.integer("guard-told") != 0;
}

}  // namespace starling
