// What is due after an update and is no training: reports, validations, checkpoints, comparisons. Their distances are those of log.every,
// valid.every and checkpoint.every, or, where these are left open, follow the length of the run, so that a short one is not over before
// it has told or saved anything.
#pragma once

#include "settings/config.h"
#include "storage/state.h"

namespace starling {

struct PostUpdateActions {
  bool reports = false, validates = false, compares = false, saves = false;
  bool any() const { return reports || validates || compares || saves; }
};

// The last update of a run of such batches by train.max-steps and train.max-tokens, or batch of the stream where the batch grows.
int64_t last_update(const TrainConfig& config, int64_t batch_tokens);

// Updates between two of each; of validations and checkpoints batches of the stream, which are more than updates where the batch grows:
// they are as many tokens apart throughout.
struct Distances {
  int64_t reports, validates, saves;
};
// Of a run that ends after `end` updates, or batches of the stream; kNoStepLimit: nobody knows. What a key leaves open is a tenth of the
// run, and at most 100, 1,000 and 1,000 updates.
Distances distances(const Config& config, int64_t end);

// After update `step`. taken: batches of the stream by then, and before it.
PostUpdateActions actions_after(const Config& config, const Distances& every, int64_t step, int64_t taken, int64_t taken_before);

// The minutes that a share of the run's time is of: train.max-minutes, or without that limit far more than any run takes.
double shared_minutes(const Config& config);

// What is due by the time, in a run that ends by train.max-minutes or has checkpoint.minutes. Time is the share of shared_minutes() that is
// gone, which rank 0 tells all ranks, so that they all come to the same.
class ActionsByTime {
 public:
  explicit ActionsByTime(const Config& config);
  // Whether anything can be due by the time.
  bool asked() const;
  // Adds to what is due after an update that ended when `gone` was gone, 0 to 1. What is due by now, for whatever reason, is due again a
  // distance later; validations so late that they take a quarter of the time at most.
  void add(PostUpdateActions& due, double gone);

  void save(State& state) const;
  // Of a checkpoint; a run that was to end at another time begins to count where it goes on.
  void restore(const State& state);

 private:
  struct Mark {
    double distance = 0;  // 0: never due by the time
    double next = 0;      // 0: not known yet
  };
  static void pass(Mark& mark, bool& due, double gone);

  double minutes_;
  bool validates_;
  Mark reports_, validations_, saves_;
  double validated_at_ = -1;  // of the last update; -1: it was not validated
};

}  // namespace starling
