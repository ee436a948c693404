// Measures what a rank computes per second while the other ranks of its host compute too, and how much that varies.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/batch.h"
#include "measure/peers.h"
#include "replica/cost.h"
#include "replica/replica.h"
#include "sim/scenario.h"

namespace starling {

// What is measured of a machine, as a scenario takes it: docs/explanation/simulator.md says how each number follows from the measurements.
struct Calibration : ComputeModel {
  double jitter = 0, jitter_ms = 0, drift = 0;
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

// Computes the rates of passes and updates for parameters of `parameter_bytes` bytes. update_s: seconds of an update without its passes;
// cached_rate: bytes/s of adding within caches, which reading weights never exceeds. Throws ConfigError if the whole passes are too short
// for a meaningful result.
Calibration rates_of(double parameter_bytes, double cached_rate, double update_s, const MeasuredPasses& whole, const MeasuredPasses& small);

// Memory-bound work of one rank, on memory that no cache holds. Rates in bytes/s.
class MemoryWork {
 public:
  explicit MemoryWork(Backend& backend);
  double adding_rate();  // of one gradient to another, as the communication thread does it
  double cached_rate();  // of adding what caches hold, to compare with
  double coding_rate();  // of the bytes that coding is charged as (strategies/compressed_exchange.h)

 private:
  double adding_rate(int64_t count, int64_t times, bool same);
  Backend& backend_;
  Storage sums_, addends_;
  Tensor gradients_, residuals_, sent_, codes_, bad_;
  CodeLayout layout_;
};

// The relative standard deviation of a rank's time of a step, from times[round][rank][step] over the work of each. What all ranks have in
// common is taken out; of a single rank, what changes slowly. 0 if there is too little to tell.
double relative_deviation(const std::vector<std::vector<std::vector<double>>>& times);
// The relative standard deviation of the means of the rounds.
double relative_drift(const std::vector<std::vector<std::vector<double>>>& times);

// Updates by this rank that were timed.
struct TimedSteps {
  std::vector<double> seconds;       // of each
  std::vector<double> besides;       // what each took beside its passes
  double forward = 0, backward = 0;  // of all
  double mean() const;               // of the seconds
};
// Makes an update with each share. Then the parameters have arrived, since other replicas may share them. Calls on_step after each update.
TimedSteps timed_steps(
    Replica& replica, Clock& clock, const Shares& shares, const std::function<void()>& on_step = [] {});

// Several ranks each have one, and call the same functions.
class RateMeter {
 public:
  // replica: trains by itself on this rank, on `shares`, which are empty where a rank is no worker. small: whether small passes and
  // memory-bound work are measured too, which rates() needs.
  RateMeter(Replica& replica, Clock& clock, Peers& peers, Shares shares, bool small);

  // Computes every share: first rank 0 alone, then all ranks at once; then the rest.
  void round();
  size_t rounds() const { return measurements_.back().size(); }
  // Begins a measurement of its own: the figures below are those of the rounds since then. Returns its index.
  size_t begin() {
    measurements_.emplace_back();
    return measurements_.size() - 1;
  }
  // Makes one measurement of the rounds of these, whose figures count from now on.
  void merge(std::span<const size_t> measurements);
  // Passes over more memory than caches hold, if it measures memory-bound work.
  void empty_caches() {
    if (memory_) memory_->adding_rate();
  }
  // Called after each step.
  std::function<void()> on_step = [] {};

  // Seconds per step, means over the rounds: what a long run gets, good minutes and bad ones.
  double alone() const;                      // of rank 0
  double local() const;                      // all at once, the slowest rank
  double forward() const, backward() const;  // the means over the workers
  double update() const;                     // the rest of a step
  // Throws ConfigError as rates_of does.
  Calibration rates() const;

 private:
  // Of all ranks together. Seconds per step, rates in bytes/s, means over the workers.
  struct Round {
    double alone = 0, own = 0, local = 0, step = 0, forward = 0, backward = 0;  // own: of rank 0, with all others
    double small_forward = 0, small_backward = 0, adding = 0, cached = 0, coding = 0;
    std::vector<std::vector<double>> steps;  // by worker and share, over the work of the share relative to the mean
  };
  // Of this rank, if it is a worker; else nothing takes time.
  TimedSteps steps(const Shares& shares);
  double mean_of(double Round::*of) const;

  Replica& replica_;
  Clock& clock_;
  Peers& peers_;
  Shares whole_, small_;
  bool all_, works_;
  double workers_ = 0;
  std::vector<double> work_;  // of all ranks' shares, one rank's after the other's, relative to their mean
  std::optional<MemoryWork> memory_;
  MeasuredPasses counted_, counted_small_;  // means over the workers
  std::vector<std::vector<Round>> measurements_{1};
};

}  // namespace starling
