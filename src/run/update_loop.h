// Makes the updates of a run, one after the other; a training run and its replay in the simulator share this code. It takes the batches of
// an update, cuts this rank's share of them into micro-batches, runs the strategy's step and decides what is due afterwards.
#pragma once

#include <functional>

#include "replica/replica.h"
#include "run/post_update_actions.h"
#include "settings/batch_size_schedule.h"
#include "settings/config.h"

namespace starling {

// Returns the options of a run's replica. optimizer: with the run's scaled rates; max_steps: planned updates.
StepOptions step_options(const Config& config, const OptimizerOptions& optimizer, int64_t max_steps);

struct MadeUpdate {
  StepResult result;
  int64_t epoch = 0;       // of its batch, from 0
  int64_t own_tokens = 0;  // target tokens of this rank's share
};

// This rank's part of a replica's share of a batch; nothing for a rank that only serves. rank: among the replicas.
Batch share_of(const Batch& batch, const Replica& replica, int rank);

class UpdateLoop {
 public:
  // The arguments must outlive this. rank: among the replicas; growth: null where the batch does not grow; micro_tokens: most target tokens
  // of a micro-batch.
  UpdateLoop(const Config& config, Replica& replica, int rank, BatchSizeSchedule* growth, int64_t micro_tokens)
      : config_(config), replica_(replica), rank_(rank), growth_(growth), micro_tokens_(micro_tokens) {}

  // What differs between a run and a replay of it.
  struct Source {
    std::function<Batch(int64_t count)> next;      // the next `count` batches of the stream as one
    std::function<Replica::End()> end;             // called immediately before the step; null: nothing ends it
    std::function<Refinement(Batch& own)> refine;  // samples for this rank's share (train.objective mixed), or null
  };
  MadeUpdate make(const Source& source);

  // Counts the update that make() has just made, and returns what is due after it. noise: of the run so far, which the batch may follow.
  PostUpdateActions count(const Distances& every, const NoiseScale& noise);

 private:
  // Batches of the stream that the updates so far took: one each, unless the batch grows.
  int64_t taken() const { return growth_ ? growth_->taken() : replica_.steps(); }

  const Config& config_;
  Replica& replica_;
  const int rank_;
  BatchSizeSchedule* const growth_;
  const int64_t micro_tokens_;
  int64_t taken_before_ = 0;
};

}  // namespace starling
