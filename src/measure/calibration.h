// Derives a machine's computing rates from steps of a replica; the simulator needs them to predict other runs (sim/scenario.h). The same
// shares are computed whole and in small micro-batches. Both compute the same products, but small micro-batches read the weights more
// often. The extra time gives the rate of moving weights, and what remains of the whole passes gives the rates of the products.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/task_progress.h"
#include "measure/bench.h"
#include "replica/cost.h"

namespace starling {

struct Calibration {
  double forward_gflops = 0, backward_gflops = 0;  // matrix products of replica/cost.h, over the time left after moving its bytes
  double weights_gb_s = 0;                         // the bytes of weights moved, over the time that takes
  double update_gb_s = 0, memory_gb_s = 0;
};

using Shares = std::vector<std::vector<Batch>>;  // one list of micro-batches per update

// Splits each share into micro-batches so small that moving the weights takes a good part of the time.
Shares in_small_passes(const Shares& shares);

// Passes over all shares: their operations, bytes and seconds.
struct MeasuredPasses {
  Work forward, backward;
  double forward_s = 0, backward_s = 0;
};
// Fills in all but the time; each share is one update.
MeasuredPasses count_passes(const ComputeCost& cost, const Shares& shares);

// Computes the rates for parameters of `parameter_bytes` bytes. update_s: seconds of an update without its passes; memory_rate: bytes/s of
// adding gradients. Throws ConfigError if the whole passes are too short for a meaningful result.
Calibration rates_of(double parameter_bytes, double memory_rate, double update_s, const MeasuredPasses& whole, const MeasuredPasses& small);

// Measures the rate of adding one gradient to another, as the communication thread does it, in bytes/s.
double adding_rate();

// Returns why the rates are implausible on a machine whose fastest products reach `peak_gflops` GFLOP/s (0: unknown), or "".
std::string doubt_about(const Calibration& rates, double peak_gflops);

// One measurement, and a description of what disturbed it, or "".
struct MeasuredRates {
  Calibration rates;
  std::string disturbance;
};
// Measures until two plausible measurements agree, and returns the faster of them; after five attempts it returns the fastest one with a
// warning. `say` gets a line for each repetition and its reason. A measurement may throw ConfigError, as rates_of does; if all do, the last
// error is rethrown.
Calibration settled_rates(const std::function<MeasuredRates()>& measure, double peak_gflops, const Say& say);

// Measures the settled rates of this machine with `train.threads` threads: a warm-up and two measurements. Each measurement takes about
// half of `seconds`, because a slower machine computes fewer and smaller batches. `told`, if given, receives the completed fraction, 0 to
// 1.
Calibration calibrate(const BenchTrainOptions& options, const Say& say = {}, const std::function<void(double share)>& told = {});

// The number of batches to measure with, and their tokens.
struct MeasuredBatches {
  int64_t count = 0, tokens = 0;
};
// Chooses batches of at most batch_tokens such that computing them four times (whole and in small passes, to warm up and to measure) takes
// twice `seconds`, with enough tokens that the products outweigh moving the weights.
MeasuredBatches batches_to_measure(int64_t batch_tokens, double seconds, double seconds_per_token);

}  // namespace starling
