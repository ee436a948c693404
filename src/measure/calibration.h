// Rates of a machine's computing, from steps of a replica: what the simulator needs to predict other runs (sim/scenario.h). The same
// shares are computed whole and in small micro-batches. Both compute the same products, but small ones move the weights more often: so
// what they take longer tells the rate of moving, and what is left of whole ones the rates of the products.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/task_progress.h"
#include "measure/bench.h"
#include "replica/cost.h"

namespace starling {

struct Calibration {
  double forward_gflops = 0, backward_gflops = 0;  // matrix products of replica/cost.h over the time beyond its bytes
  double weights_gb_s = 0;                         // those bytes over their time
  double update_gb_s = 0, memory_gb_s = 0;
};

using Shares = std::vector<std::vector<Batch>>;  // of each update, in micro-batches

// Each share in micro-batches so small that moving the weights takes a good part of the time.
Shares in_small_passes(const Shares& shares);

// Passes through all shares: what they compute and move, and how long that took, seconds.
struct MeasuredPasses {
  Work forward, backward;
  double forward_s = 0, backward_s = 0;
};
// Without the time; each share is an update.
MeasuredPasses count_passes(const ComputeCost& cost, const Shares& shares);

// Of parameters of so many bytes; update_s: of an update without its passes; memory_rate: of adding up, bytes/s. ConfigError if the whole
// passes are too short to tell anything.
Calibration rates_of(double parameter_bytes, double memory_rate, double update_s, const MeasuredPasses& whole, const MeasuredPasses& small);

// Adding one gradient to another, as the communication thread does it, bytes/s.
double adding_rate();

// What speaks against rates on a machine whose fastest products have so many GFLOP/s (0: unknown); "" if nothing does.
std::string doubt_about(const Calibration& rates, double peak_gflops);

// One measurement, and what disturbed it, in words; "" if nothing did.
struct MeasuredRates {
  Calibration rates;
  std::string disturbance;
};
// Measures until two measurements without a doubt agree, and gives the faster of them; after five the fastest, with a warning. `say` is
// told what is measured again and why. A measurement may throw ConfigError, as rates_of does; if all do, the last error comes out.
Calibration settled_rates(const std::function<MeasuredRates()>& measure, double peak_gflops, const Say& say);

// The rates of this machine with `train.threads` threads, settled: a warm-up and two measurements, which take about half of `seconds` each,
// since a slow machine computes fewer and smaller batches. `told`, if given, gets the share that is done, 0 to 1.
Calibration calibrate(const BenchTrainOptions& options, const Say& say = {}, const std::function<void(double share)>& told = {});

// Batches to measure with, and their tokens.
struct MeasuredBatches {
  int64_t count = 0, tokens = 0;
};
// So many, and of at most batch_tokens, that they are computed four times (whole and in small passes, to warm up and to measure) in twice
// the seconds; but enough of them that the products outweigh the moving of weights.
MeasuredBatches batches_to_measure(int64_t batch_tokens, double seconds, double seconds_per_token);

}  // namespace starling
