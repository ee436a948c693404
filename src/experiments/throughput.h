// Measures target tokens per virtual second of training, of a simulated run and of a single worker under the same cost model.
#pragma once

#include <vector>

#include "run/trainer.h"
#include "sim/simulate.h"

namespace starling {

// Counts what a run trains, without validation, checkpoints and reports. The tokens of asynchronous ranks are added up.
class Throughput {
 public:
  explicit Throughput(int ranks) : ranks_(static_cast<size_t>(ranks)) {}
  // Returns what rank `world.comm->rank()` passes to run_training; this object and the world must outlive the run.
  TrainingWatch watch(World& world);
  double tokens_per_second() const;  // 0 if nothing was trained
  int workers() const;               // ranks that trained

 private:
  struct Rank {
    int64_t since_ns = 0, ns = 0, tokens = 0;  // ns: time up to the last pause
  };
  std::vector<Rank> ranks_;
};

// Returns the throughput that a single worker with its own train.batch-tokens would have on the trained run in config.train.output. It
// replays the first updates without computing, and without jitter, stragglers and faults.
double one_worker_tokens_per_second(const Config& config, Scenario scenario);

}  // namespace starling
