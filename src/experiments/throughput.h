// Target tokens a virtual second of training: of a simulated run, and of one worker alone by the same model of computing.
#pragma once

#include <vector>

#include "run/trainer.h"
#include "sim/simulate.h"

namespace starling {

// What a run trains, validation, checkpoints and reports left out. Ranks that go their own ways are added up.
class Throughput {
 public:
  explicit Throughput(int ranks) : ranks_(static_cast<size_t>(ranks)) {}
  // What rank `world.comm->rank()` gives to run_training; this and the world must outlive the run.
  TrainingWatch watch(World& world);
  double tokens_per_second() const;  // 0: nothing was trained
  int workers() const;               // ranks that trained

 private:
  struct Rank {
    int64_t since_ns = 0, ns = 0, tokens = 0;  // ns: up to the last pause
  };
  std::vector<Rank> ranks_;
};

// What one worker with train.batch-tokens of its own computes of the run in config.train.output, which has been trained: a replay of its
// first updates, in which nothing is computed but time. Jitter, stragglers and faults are left out.
double one_worker_tokens_per_second(const Config& config, Scenario scenario);

}  // namespace starling
