// A batch that grows in the course of a run: an update takes one batch of the stream at first, later 2, 4, 8 of them in a row. Schedules
// and the run's end go by the batches taken, hence by tokens, and mean the same whatever the batch is. docs/guides/optimizers.md says when
// it pays.
#pragma once

#include <cstdint>

#include "data/batches.h"
#include "settings/config.h"
#include "storage/state.h"
#include "strategies/noise_scale.h"

namespace starling {

class BatchSizeSchedule {
 public:
  // batch_tokens: target tokens of the stream's batches; end: batches that the run ends after.
  BatchSizeSchedule(const TrainConfig& train, int64_t batch_tokens, int64_t end) : train_(train), batch_tokens_(batch_tokens), end_(end) {}

  // Whether the configuration asks for it.
  static bool asked(const TrainConfig& train) { return !train.batch_doubles_at.empty() || train.batch_follows_noise > 0; }

  // Of the stream's batches, how many an update takes by now: a power of two.
  int64_t factor() const;
  // That the next update takes: the factor, or what is left before the end.
  int64_t next() const;
  // Of the next update's learning rate, by which it is larger than for one batch.
  double rate_factor() const;
  // Batches taken by the updates so far.
  int64_t taken() const { return taken_; }
  // Updates of the whole run; only where the noise has no say.
  int64_t updates() const;

  // An update was made, of next() batches; noise: of the run so far.
  void updated(const NoiseScale& noise);

  void save(State& state) const;
  // Of a checkpoint; in a run whose batch did not grow each update took one.
  static int64_t batches_taken(const State& state);
  // scale: batches of this run for one of the run that was saved, whose number of workers may have been another.
  void restore(const State& state, double scale);

 private:
  // By the shares of the run.
  int64_t planned_factor() const;

  TrainConfig train_;
  int64_t batch_tokens_, end_;
  int64_t taken_ = 0, noise_factor_ = 1;
};

// The next `count` batches as one.
Batch next_batches(BatchStream& stream, int64_t count);

}  // namespace starling
