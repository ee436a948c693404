// `starling bench exchange` in the simulator, where a ring's time has a closed form.
#include "measure/exchange.h"

#include <gtest/gtest.h>

#include "sim/simulate.h"

namespace starling {
namespace {

TEST(BenchExchange, ARingTakesItsClosedForm) {
  constexpr int kRanks = 4;
  Scenario cluster;
  cluster.ranks = kRanks;
  cluster.network.inter = cluster.network.intra = {1000, 8, 0};  // 1 ms and 1 GB/s
  cluster.compute = {0, 0, 0, 0, 0};                             // only messages take time
  BenchExchangeOptions options;
  options.device = "cpu", options.mib = 8, options.bucket_mib = {8, 2}, options.algorithms = {Algorithm::ring}, options.rounds = 3;
  BenchExchangeResult result;
  simulate(cluster, [&](World& world) {
    const BenchExchangeResult mine = bench_exchange(options, world);
    if (world.comm->rank() == 0) result = mine;
  });
  EXPECT_EQ(result.ranks, kRanks);
  ASSERT_EQ(result.times.size(), 2u);
  const double bytes = 8 * (1 << 20), rounds = 2 * (kRanks - 1);
  EXPECT_EQ(result.times[0].bucket_mib, 8);
  // Ranks leave the barrier before up to a message of it apart, and the slowest one's time counts.
  const double ring = rounds * (1e-3 + bytes / kRanks / 1e9);
  EXPECT_NEAR(result.times[0].seconds, ring + 1e-3, 1.1e-3);
  // Four buckets go at the same time: as many bytes, and the latency of one of them, where one after the other would wait for that of four.
  EXPECT_EQ(result.times[1].bucket_mib, 2);
  EXPECT_GE(result.times[1].seconds, ring - 1e-4);
  EXPECT_LE(result.times[1].seconds, ring + rounds * 1e-3);
}

TEST(BenchExchange, OfOneRankIsRefused) {
  World alone = make_local_world();
  EXPECT_THROW(bench_exchange({}, alone), ConfigError);
}

}  // namespace
}  // namespace starling
