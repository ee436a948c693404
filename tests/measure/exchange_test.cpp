// `starling bench exchange` in the simulator, where a ring's time has a closed form.
#include "measure/exchange.h"

#include <gtest/gtest.h>

#include <utility>

#include "sim/simulate.h"

namespace starling {
namespace {

constexpr int kRanks = 4;
constexpr double kBytes = 8 * (1 << 20), kRounds = 2 * (kRanks - 1);

// Seconds of the ring with all of 8 MiB in one bucket, and with four buckets, over links of 1 GB/s.
std::pair<double, double> ring_seconds(double latency_us) {
  Scenario cluster;
  cluster.ranks = kRanks;
  cluster.network.inter = cluster.network.intra = {latency_us, 8, 0};
  cluster.compute = {0, 0, 0, 0, 0};  // only messages take time
  BenchExchangeOptions options;
  options.device = "cpu", options.mib = 8, options.bucket_mib = {8, 2}, options.algorithms = {Algorithm::ring}, options.rounds = 3;
  BenchExchangeResult result;
  simulate(cluster, [&](World& world) {
    const BenchExchangeResult mine = bench_exchange(options, world);
    if (world.comm->rank() == 0) result = mine;
  });
  EXPECT_EQ(result.ranks, kRanks);
  EXPECT_EQ(result.times.at(0).bucket_mib, 8);
  EXPECT_EQ(result.times.at(1).bucket_mib, 2);
  return {result.times.at(0).seconds, result.times.at(1).seconds};
}

TEST(BenchExchange, ARingTakesItsClosedForm) {
  const auto [one, four] = ring_seconds(0);
  EXPECT_NEAR(one, kRounds * kBytes / kRanks / 1e9, 1e-6);
  EXPECT_NEAR(four, kRounds * kBytes / kRanks / 1e9, 1e-6);  // as many bytes share the links
  // A latency of 1 ms adds that of each round, and that ranks leave the barrier before it up to eight messages apart. Four buckets go at
  // the same time: one after the other would add the latency of 24 rounds.
  const auto [late, late_four] = ring_seconds(1000);
  EXPECT_GE(late - one, kRounds * 1e-3 - 1e-6);
  EXPECT_LE(late - one, (kRounds + 8) * 1e-3 + 1e-6);
  EXPECT_GE(late_four - four, kRounds * 1e-3 - 1e-6);
  EXPECT_LT(late_four - four, 4 * kRounds * 1e-3);
}

TEST(BenchExchange, OfOneRankIsRefused) {
  World alone = make_local_world();
  EXPECT_THROW(bench_exchange({}, alone), ConfigError);
}

}  // namespace
}  // namespace starling
