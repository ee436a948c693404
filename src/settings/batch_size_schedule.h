// Grows the batch in the course of a run: an update takes one batch of the stream at first, later 2, 4, 8 consecutive ones. Schedules and
// the end of the run count batches taken, hence tokens, so they do not depend on the batch size. docs/guides/optimizers.md says when it
// pays.
#pragma once

#include <cstdint>

#include "data/batches.h"
#include "settings/config.h"
#include "storage/state.h"
#include "strategies/noise_scale.h"

namespace starling {

class BatchSizeSchedule {
 public:
  // batch_tokens: target tokens per batch of the stream; end: number of batches after which the run ends.
  BatchSizeSchedule(const TrainConfig& train, int64_t batch_tokens, int64_t end) : train_(train), batch_tokens_(batch_tokens), end_(end) {}

  // Returns whether the configuration asks for a growing batch.
  static bool asked(const TrainConfig& train) { return !train.batch_doubles_at.empty() || train.batch_follows_noise > 0; }

  // Returns how many batches of the stream an update takes at this point: a power of two.
  int64_t factor() const;
  // Returns how many batches the next update takes: the factor, or what is left before the end.
  int64_t next() const;
  // Returns the factor by which the next update's learning rate exceeds that for one batch.
  double rate_factor() const;
  // Batches taken by the updates so far.
  int64_t taken() const { return taken_; }
  // Returns the updates of the whole run; only valid if the batch does not follow the noise scale.
  int64_t updates() const;

  // Call after an update of next() batches; noise: the noise scale of the run so far.
  void updated(const NoiseScale& noise);

  void save(State& state) const;
  // Returns the batches taken up to a checkpoint; in a run whose batch did not grow, each update took one.
  static int64_t batches_taken(const State& state);
  // scale: batches of this run per batch of the saved run, which may have had a different number of workers.
  void restore(const State& state, double scale);

 private:
  // The factor according to batch_doubles_at.
  int64_t planned_factor() const;

  TrainConfig train_;
  int64_t batch_tokens_, end_;
  int64_t taken_ = 0, noise_factor_ = 1;
};

// Returns the next `count` batches as one.
Batch next_batches(BatchStream& stream, int64_t count);

}  // namespace starling
