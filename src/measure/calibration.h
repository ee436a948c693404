// Measures a machine's computing rates with steps of replicas, one for each rank of a host; the simulator needs them to predict other runs
// (sim/scenario.h). The same shares are computed whole and in small micro-batches. Both compute the same products, but small micro-batches
// read the weights more often. The extra time gives the rate of moving weights, and what remains of the whole passes gives the rates of the
// products.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/task_progress.h"
#include "measure/bench.h"
#include "measure/rate_meter.h"

namespace starling {

// Returns why the rates are implausible on a machine whose fastest products reach `peak_gflops` GFLOP/s (0: unknown), or "".
std::string doubt_about(const Calibration& rates, double peak_gflops);

// One measurement, its index in the meter, and a description of what disturbed it, or "".
struct MeasuredRates {
  size_t measurement = 0;
  Calibration rates;
  std::string disturbance;
};
// Measures until two plausible measurements agree, and returns their indices: a long run gets what lies between them. After five attempts
// it returns that of the fastest one, with a warning. `say` gets a line for each repetition and its reason. A measurement may throw
// ConfigError, as rates_of does; if all do, the last error is rethrown.
std::vector<size_t> settle(const std::function<MeasuredRates()>& measure, double peak_gflops, const Say& say);

// Measures the settled rates of this machine for `ranks` ranks that compute at once with `train.threads` threads each: a warm-up and two
// measurements. Each measurement takes about half of `seconds`, because a slower machine computes fewer and smaller batches. `told`, if
// given, receives the completed fraction, 0 to 1.
Calibration calibrate(const BenchTrainOptions& options, int ranks = 1, const Say& say = {},
                      const std::function<void(double share)>& told = {});

// The number of batches to measure with, and their tokens.
struct MeasuredBatches {
  int64_t count = 0, tokens = 0;
};
// Chooses batches of at most batch_tokens such that computing them eight times (whole and in small passes, to warm up and in the rounds
// that are measured) takes twice `seconds`, with enough tokens that the products outweigh moving the weights.
MeasuredBatches batches_to_measure(int64_t batch_tokens, double seconds, double seconds_per_token);

}  // namespace starling
