// Logging, validation, comparison of replicas and checkpoints to run after an update. Their intervals are log.every, valid.every,
// strategy.check-every and checkpoint.every. Intervals that are left open follow the length of the run, so that even a short run reports
// and saves something before it ends.
#pragma once

#include "settings/config.h"
#include "storage/state.h"

namespace starling {

struct PostUpdateActions {
  bool reports = false, validates = false, compares = false, saves = false;
  bool any() const { return reports || validates || compares || saves; }
};

// Returns the last update of a run with batches of this size, by train.max-steps and train.max-tokens; where the batch grows, the last
// batch of the stream.
int64_t last_update(const TrainConfig& config, int64_t batch_tokens);

// Intervals: between reports in updates; between validations and between checkpoints in batches of the stream. Where the batch grows, an
// update takes several batches of the stream, so that validations and checkpoints stay the same number of tokens apart.
struct Distances {
  int64_t reports, validates, saves;
};
// Returns the intervals of a run that ends after `end` updates, or batches of the stream (kNoStepLimit: unknown). An interval that its key
// leaves open is a tenth of the run, but at most 100, 1,000 and 1,000 updates respectively.
Distances distances(const Config& config, int64_t end);

// Returns what is due after update `step`. taken, taken_before: batches of the stream taken by the end of this update, and before it.
PostUpdateActions actions_after(const Config& config, const Distances& every, int64_t step, int64_t taken, int64_t taken_before);

// Returns the minutes that shares of the run's time refer to: train.max-minutes or, without that limit, far more than any run takes.
double shared_minutes(const Config& config);

// Decides what is due by elapsed time, in a run with train.max-minutes or checkpoint.minutes. Time is the elapsed share of
// shared_minutes(), which rank 0 sends to all ranks, so that they all decide alike.
class ActionsByTime {
 public:
  explicit ActionsByTime(const Config& config);
  // Whether anything can become due by elapsed time.
  bool asked() const;
  // Adds what is due by time after an update that ended when the share `gone` of the time, 0 to 1, had elapsed. Whatever is due now, for
  // any reason, is due again one interval later; validations are delayed, and left out, so that they and the one at the end take
  // at most a quarter of the time.
  void add(PostUpdateActions& due, double gone);

  void save(State& state) const;
  // Restores from a checkpoint. If the run was to end at another time, its intervals start over where it resumes.
  void restore(const State& state);

 private:
  struct Mark {
    double distance = 0;  // 0: never due by elapsed time
    double next = 0;      // 0: not known yet
  };
  static void pass(Mark& mark, bool& due, double gone);

  double minutes_;
  bool validates_;
  Mark reports_, validations_, saves_;
  double validated_ = 0;      // share of the time that validations have taken
  double validated_at_ = -1;  // time of the last update if it was validated, else -1
};

}  // namespace starling
