// Small training runs of models that are divided among simulated ranks, and what they are compared by.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/simulate.h"
#include "tests/strategies/training.h"

namespace starling {

inline std::vector<TrainingTrace> simulated(const TrainingRun& run, int ranks) {
  Scenario scenario;
  scenario.ranks = ranks;
  scenario.network.preset = "10gbe";
  std::vector<TrainingTrace> traces(static_cast<size_t>(ranks));
  simulate(scenario, [&](World& world) { traces[static_cast<size_t>(world.comm->rank())] = train_together(run, world); });
  return traces;
}

inline TrainingTrace alone(const TrainingRun& run) {
  World world = make_local_world();
  return train_together(run, world);
}

inline double worst(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0;
  EXPECT_EQ(a.size(), b.size());
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) difference = std::max(difference, std::abs(a[i] - b[i]) / std::abs(b[i]));
  return difference;
}

// Largest difference, by the largest value of the parameter, or of a part of it.
inline double worst(const std::map<std::string, std::vector<double>>& a, const std::map<std::string, std::vector<double>>& b) {
  double difference = 0;
  for (const auto& [name, values] : a) {
    double largest = 0, apart = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(b.at(name)[i]));
      apart = std::max(apart, std::abs(values[i] - b.at(name)[i]));
    }
    difference = std::max(difference, apart / largest);
  }
  return difference;
}

// The elements of a model's parameters that a rank has.
inline std::map<std::string, std::vector<double>> part_of(const std::map<std::string, std::vector<double>>& whole,
                                                          const TrainingTrace& trace) {
  std::map<std::string, std::vector<double>> part;
  for (const auto& [name, ranges] : trace.ranges)
    for (const Range& r : ranges) part[name].insert(part[name].end(), whole.at(name).begin() + r.begin, whole.at(name).begin() + r.end);
  return part;
}

// A run with two replicas, and the same with its model divided, which must not matter to them.
inline void expect_as_two_whole_replicas(TrainingRun run, const ParallelOptions& parallel, const std::string& name) {
  const auto whole = simulated(run, 2);
  run.parallel = parallel;
  const auto ranks = static_cast<size_t>(parallel.ranks());
  const auto divided = simulated(run, static_cast<int>(2 * ranks));
  for (size_t r = 0; r < divided.size(); ++r) {
    EXPECT_LT(worst(divided[r].losses, whole[r / ranks].losses), 1e-9) << name;
    EXPECT_LT(worst(divided[r].norms, whole[r / ranks].norms), 1e-9) << name;
    EXPECT_LT(worst(divided[r].parameters, part_of(whole[r / ranks].parameters, divided[r])), 1e-8) << name;
  }
}

// Each element of each parameter is owned by one rank of each replica; copies are equal to what they are copies of.
inline void expect_whole(const std::vector<TrainingTrace>& traces, int ranks, const TrainingTrace& one) {
  for (size_t first = 0; first < traces.size(); first += static_cast<size_t>(ranks)) {
    std::map<std::string, std::vector<double>> all;
    for (const auto& [name, values] : one.parameters) all[name].assign(values.size(), NAN);
    for (size_t r = first; r < first + static_cast<size_t>(ranks); ++r) {
      for (const auto& [name, values] : traces[r].parameters) {
        size_t from = 0;
        for (const Range& range : traces[r].ranges.at(name))
          for (int64_t at = range.begin; at < range.end; ++at) {
            EXPECT_TRUE(std::isnan(all[name][static_cast<size_t>(at)])) << name << " " << at;
            all[name][static_cast<size_t>(at)] = values[from++];
          }
        EXPECT_EQ(from, values.size()) << name;
      }
    }
    for (const auto& [name, values] : all)
      EXPECT_TRUE(std::none_of(values.begin(), values.end(), [](double x) { return std::isnan(x); })) << name;
    for (size_t r = first; r < first + static_cast<size_t>(ranks); ++r) {
      const auto here = part_of(all, traces[r]);
      for (const auto& [name, values] : traces[r].copies) EXPECT_EQ(values, here.at(name)) << name << " on rank " << r;
    }
  }
}

}  // namespace starling
