// `starling bench distributed`: what several ranks gain over one, and where the time goes; every figure is taken in the same run. All ranks
// call it; over MPI it measures, in the simulator it predicts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/world.h"
#include "measure/calibration.h"
#include "strategies/options.h"

namespace starling {

struct BenchDistributedOptions {
  BenchTrainOptions train;  // batch_tokens: of each worker
  StrategyOptions strategy;
  int64_t batches = 8;                                                      // distinct global batches, taken in turn
  int64_t steps = 0;                                                        // measured steps of each kind; 0: as many as train.seconds hold
  std::function<void(const std::string&)> say = [](const std::string&) {};  // told on rank 0 what begins
};

struct BenchDistributedResult {
  int ranks = 1, workers = 1;
  std::string machine, strategy;
  int64_t parameters = 0, gradient_bytes = 0, steps = 0;
  double tokens_per_step = 0;  // target, of all workers
  // Seconds a step, on the slowest rank; the fastest of several rounds.
  double alone = 0;                  // rank 0 by itself, the others idle
  double local = 0;                  // all ranks at once, each for itself: what sharing the machine costs
  double forward = 0, backward = 0;  // of `local`, mean over the workers
  double blocking = 0;               // the strategy, exchange after the backward pass
  double overlapped = 0;             // the strategy, exchange during the backward pass
  double exchange = 0;               // all buckets all-reduced, nothing computed
  double last_bucket = 0;            // the part of `exchange` that becomes ready only when the backward pass ends
  // forward + max(backward, exchange) + last_bucket + the update.
  double ideal = 0;
  // The same for buckets that go one after the other as they become ready: never above blocking.
  double pipeline = 0;
  double product_rate_alone = 0, product_rate_together = 0;  // FLOP/s of one rank; 0: not measured
  double latency_s = 0, bandwidth = 0;                       // of a link between the first and the last rank; bytes/s one way
  Calibration rates;                                         // of a rank, from `local`: what the simulator needs to predict other runs
  std::vector<double> bytes_sent;                            // by rank, a step of `overlapped`
  std::vector<double> waited;                                // seconds by rank, a step of `overlapped`
};

// The result is complete on every rank.
BenchDistributedResult bench_distributed(const BenchDistributedOptions& options, World& world);

}  // namespace starling
