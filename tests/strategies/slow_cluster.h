// Asynchronous runs on a simulated cluster, and what is compared of them.
#pragma once

#include <cmath>
#include <vector>

#include "sim/simulate.h"
#include "tests/strategies/asynchronous.h"

namespace starling {

// One update of a worker takes some ten milliseconds, an exchange a tenth of one.
inline Scenario slow_cluster(int ranks) {
  Scenario s;
  s.ranks = ranks;
  s.network.preset = "infiniband";
  s.compute = {.forward_gflops = 0.5, .backward_gflops = 0.5, .update_gb_s = 20, .memory_gb_s = 20, .piece_us = 1};
  return s;
}

struct Simulated {
  std::vector<AsynchronousTrace> ranks;
  SimulationResult result;
  const AsynchronousTrace& first() const { return ranks.front(); }
  const AsynchronousTrace& server() const { return ranks.back(); }
};

inline Simulated simulated(const AsynchronousRun& run, const Scenario& scenario) {
  Simulated all;
  all.ranks.resize(static_cast<size_t>(scenario.ranks));
  all.result = simulate(scenario, [&](World& world) { all.ranks[static_cast<size_t>(world.comm->rank())] = train_apart(run, world); });
  return all;
}

inline AsynchronousTrace alone(AsynchronousRun run) {
  run.strategy = {};
  World world = make_local_world();
  return train_apart(run, world);
}

inline double largest_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0;
  EXPECT_EQ(a.size(), b.size());
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) difference = std::max(difference, std::abs(a[i] - b[i]));
  return difference;
}

inline double euclidean_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(squares);
}

inline AsynchronousRun in_step(int64_t servers) {
  AsynchronousRun run;
  run.strategy.servers = servers, run.strategy.overlap = false;
  run.strategy.asynchronous.sum_pushes = 0, run.strategy.asynchronous.wait_for_step = true;
  return run;
}

}  // namespace starling
