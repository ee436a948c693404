#include "run/run_parts.h"

#include <algorithm>

namespace starling {

int64_t schedule_end(const RunParts& run) {
  const int64_t epochs = run.config.train.max_epochs;
  return epochs > 0 ? std::min(run.max_steps, std::max<int64_t>(1, epochs * run.batches_per_epoch)) : run.max_steps;
}

std::string end_text(const RunParts& run, int64_t update, double minutes) {
  const std::string time = fmt::format("after {:g} minutes", minutes);
  if (update == kNoStepLimit) return minutes > 0 ? time : "at no end";
  const std::string place =
      run.growth ? fmt::format("after {} target tokens", update * run.batch_tokens) : fmt::format("at update {}", update);
  return fmt::format("{}{}", place, minutes > 0 ? " or " + time : "");
}

bool RunStatus::time_is_up() const {
  const double minutes = run.config.train.max_minutes;
  return minutes > 0 && elapsed() >= 60 * minutes;
}

bool RunStatus::limits_reached() const {
  const int64_t epochs = run.config.train.max_epochs;
  return early_stopped || (epochs > 0 && run.stream->position().epoch >= epochs);
}

std::string RunStatus::limit_reached(int64_t stalled) const {
  const TrainConfig& t = run.config.train;
  if (text_ended) return fmt::format("complete: the text has ended after {} lines", run.text->lines());
  if (early_stopped) return fmt::format("early stopping: {} not better in {} validations", run.config.valid.deciding_metric(), stalled);
  if (run.taken() >= run.max_steps)
    return run.max_steps < step_limit(t) ? fmt::format("complete: train.max-tokens {}", t.max_tokens)
                                         : fmt::format("complete: train.max-steps {}", run.max_steps);
  if (limits_reached()) return fmt::format("complete: train.max-epochs {}", t.max_epochs);
  if (time_is_up()) return fmt::format("complete: train.max-minutes {:g}", t.max_minutes);
  return fmt::format("complete: train.max-steps {}, the mean of the workers", run.max_steps);  // replicas are served, and the servers count
}

double RunStatus::time_gone() const {
  const bool rate = run.config.train.max_minutes > 0 && (has_end(run.optimizer.schedule) || run.optimizer.warmup_share > 0);
  if (!run.first() || !(rate || by_time)) return 0;
  const double all = 60 * shared_minutes(run.config) - preparation;
  return all > 0 ? std::clamp((elapsed() - preparation) / all, 0.0, 1.0) : 1;
}

double RunStatus::fraction(double counted) const {
  const TrainConfig& t = run.config.train;
  double f = run.driver->fraction(counted);
  const BatchPosition at = run.stream->position();
  if (t.max_epochs > 0)
    f = std::max(f, (static_cast<double>(at.epoch) +
                     static_cast<double>(at.index) / static_cast<double>(std::max<int64_t>(run.batches_per_epoch, 1))) /
                        static_cast<double>(t.max_epochs));
  if (t.max_minutes > 0) f = std::max(f, elapsed() / (60 * t.max_minutes));
  return std::min(f, 1.0);
}

}  // namespace starling
