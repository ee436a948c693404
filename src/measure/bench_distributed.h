// `starling bench distributed`: how much several ranks gain over one, and where the time goes. All figures are taken in the same run, and
// all ranks call it. Over MPI it measures; in the simulator it predicts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/world.h"
#include "measure/bench.h"
#include "measure/rate_meter.h"
#include "strategies/options.h"

namespace starling {

struct BenchDistributedOptions {
  BenchTrainOptions train;  // batch_tokens is per worker
  StrategyOptions strategy;
  int64_t batches = 8;  // distinct global batches, taken in turn
  int64_t steps = 0;    // measured steps of each kind; 0: as many as fit into train.seconds
  bool settle = false;  // measures until two measurements, each of half of the steps, agree (measure/calibration.h)
  std::function<void(const std::string&)> say = [](const std::string&) {};  // called on rank 0 when a phase begins
};

struct BenchDistributedResult {
  int ranks = 1, ranks_per_host = 1, workers = 1;
  std::string machine, strategy;
  int64_t parameters = 0, gradient_bytes = 0, steps = 0;
  double tokens_per_step = 0;  // target, of all workers
  // Seconds per step on the slowest rank, means of several rounds.
  double alone = 0;                  // rank 0 computes, the others are idle
  double local = 0;                  // all ranks compute at once without exchange: the cost of sharing the machine
  double forward = 0, backward = 0;  // of `local`, mean over the workers
  double blocking = 0;               // the strategy, with the exchange after the backward pass
  double overlapped = 0;             // the strategy, with the exchange during the backward pass
  double exchange = 0;               // all-reduce of all buckets, without computing and from memory that no cache holds
  double last_bucket = 0;            // the part of `exchange` that can start only when the backward pass ends
  // forward + max(backward, exchange) + last_bucket + the update.
  double ideal = 0;
  // The same if buckets are exchanged one after the other as they become ready; never above `blocking`.
  double pipeline = 0;
  double product_rate_alone = 0, product_rate_together = 0;  // FLOP/s of one rank; 0: not measured
  double latency_s = 0, bandwidth = 0;                       // of the link between the first and the last rank (measure/link.h)
  double step_bandwidth = 0;                                 // what that link gives to exchanges within steps; 0: not measured
  Calibration rates;                                         // of one rank, all at once; the simulator needs them to predict other runs
  std::vector<double> bytes_sent;                            // by rank, per step of `overlapped`
  std::vector<double> waited;                                // by rank, seconds per step of `overlapped`
};

// Returns the complete result on every rank.
BenchDistributedResult bench_distributed(const BenchDistributedOptions& options, World& world);

}  // namespace starling
