// `starling bench exchange`: the sum of a gradient among ranks, by each algorithm and in buckets of several sizes, all in the same run.
#pragma once

#include <string>
#include <vector>

#include "comm/world.h"

namespace starling {

struct BenchExchangeOptions {
  std::string device = "auto";
  double mib = 256;  // of the gradient, f32
  std::vector<double> bucket_mib{4, 64};
  std::vector<Algorithm> algorithms{Algorithm::ring, Algorithm::library};
  int64_t rounds = 7;
};

struct BenchExchangeResult {
  struct Time {
    Algorithm algorithm;
    double bucket_mib, seconds;  // the median of the rounds, on the slowest rank
  };
  std::string machine, connection;  // how the tensors travel
  int ranks = 1;
  double mib = 0;
  std::vector<Time> times;
};

// Collective; the same on all ranks. Throws ConfigError if there is only one.
BenchExchangeResult bench_exchange(const BenchExchangeOptions& options, World& world);

}  // namespace starling
