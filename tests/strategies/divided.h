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

// Largest difference, by the largest value of the parameter.
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

// Every parameter is owned by one stage of each replica, once; copies are equal to what they are copies of.
inline void expect_whole(const std::vector<TrainingTrace>& traces, int stages, const TrainingTrace& one) {
  for (size_t replica = 0; replica < traces.size() / static_cast<size_t>(stages); ++replica) {
    std::map<std::string, std::vector<double>> all;
    size_t owned = 0;
    for (size_t s = 0; s < static_cast<size_t>(stages); ++s) {
      const TrainingTrace& trace = traces[replica * static_cast<size_t>(stages) + s];
      EXPECT_FALSE(trace.parameters.empty());
      owned += trace.parameters.size();
      all.insert(trace.parameters.begin(), trace.parameters.end());
    }
    EXPECT_EQ(owned, one.parameters.size());
    EXPECT_EQ(all.size(), one.parameters.size());
    for (size_t s = 0; s < static_cast<size_t>(stages); ++s)
      for (const auto& [name, values] : traces[replica * static_cast<size_t>(stages) + s].copies)
        EXPECT_EQ(values, all.at(name)) << name << " on stage " << s;
  }
}

}  // namespace starling
