#include "measure/rate_meter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "base/random.h"
#include "measure/calibration.h"

namespace starling {
namespace {

using Times = std::vector<std::vector<std::vector<double>>>;

// times[round][rank][step]: a speed that all ranks of a round have in common, one that a rank keeps, and noise of each step.
Times drawn(int rounds, int ranks, int steps, double deviation, double drift, double of_rank = 0) {
  Random random(1, 2);
  Times times(static_cast<size_t>(rounds));
  for (int i = 0; i < rounds; ++i) {
    const double common = 10 * (1 + drift * std::sin(0.05 * i));
    times[static_cast<size_t>(i)].resize(static_cast<size_t>(ranks));
    for (int r = 0; r < ranks; ++r)
      for (int s = 0; s < steps; ++s)
        times[static_cast<size_t>(i)][static_cast<size_t>(r)].push_back(common + of_rank * r + 10 * deviation * random.normal());
  }
  return times;
}

TEST(RelativeDeviation, FindsWhatRanksDoNotShare) {
  EXPECT_NEAR(relative_deviation(drawn(2000, 2, 4, 0.03, 0)), 0.03, 0.001);
  EXPECT_NEAR(relative_deviation(drawn(2000, 2, 4, 0.03, 0.1)), 0.03, 0.001) << "drift that the ranks share";
  EXPECT_NEAR(relative_deviation(drawn(2000, 8, 1, 0.03, 0)), 0.03, 0.001);
  EXPECT_NEAR(relative_deviation(drawn(4000, 1, 1, 0.03, 0.1)), 0.03, 0.001) << "slow drift of one rank";
  EXPECT_NEAR(relative_deviation(drawn(100, 2, 3, 0, 0)), 0, 1e-12);
  // Ranks of 10 and 11 seconds: each is 0.5 from the mean of 10.5.
  EXPECT_NEAR(relative_deviation(drawn(100, 2, 3, 0, 0, 1)), std::sqrt(0.5) / 10.5, 1e-12);
}

TEST(RelativeDeviation, IsUnbiasedWithFewRounds) {
  for (const int ranks : {1, 2}) {
    double squares = 0;
    const int trials = 500;
    const Times all = drawn(2 * trials, ranks, 2, 0.03, 0);
    for (int t = 0; t < trials; ++t) {
      const double d = relative_deviation({all[static_cast<size_t>(2 * t)], all[static_cast<size_t>(2 * t + 1)]});
      squares += d * d / trials;
    }
    EXPECT_NEAR(std::sqrt(squares), 0.03, 0.002) << ranks;
  }
}

TEST(RelativeDeviation, IsZeroWhereNothingTells) {
  EXPECT_EQ(relative_deviation({}), 0);
  EXPECT_EQ(relative_deviation(drawn(1, 1, 4, 0.3, 0)), 0);
}

TEST(RelativeDrift, IsTheDeviationOfTheRounds) {
  // The sine's deviation is its amplitude over the root of 2.
  EXPECT_NEAR(relative_drift(drawn(4000, 2, 4, 0, 0.1)), 0.1 / std::sqrt(2.0), 0.001);
  EXPECT_NEAR(relative_drift(drawn(4000, 2, 4, 0.04, 0)), 0.04 / std::sqrt(8.0), 0.001);
  EXPECT_EQ(relative_drift(drawn(1, 2, 4, 0.04, 0)), 0);
}

TEST(Peers, ThreadsGatherWhatEachHas) {
  ThreadGroup group(3);
  std::vector<std::vector<double>> got(3);
  std::vector<std::thread> threads;
  for (int r = 0; r < 3; ++r)
    threads.emplace_back([&, r] {
      ThreadPeers peers(group, r);
      for (int i = 0; i < 100; ++i) {
        const double own[] = {static_cast<double>(r), static_cast<double>(10 * r + i)};
        got[static_cast<size_t>(r)] = peers.gather(own);
      }
    });
  for (std::thread& t : threads) t.join();
  for (const auto& all : got) EXPECT_EQ(all, (std::vector<double>{0, 99, 1, 109, 2, 119}));
}

TEST(Peers, AThreadThatLeavesHoldsNobodyUp) {
  ThreadGroup group(2);
  std::thread other([&] { ThreadPeers(group, 1).leave(); });
  ThreadPeers peers(group, 0);
  const double own[] = {3};
  EXPECT_EQ(peers.gather(own), (std::vector<double>{3, 0}));
  other.join();
}

BenchTrainOptions tiny() {
  BenchTrainOptions o;
  o.model = model_preset("transformer-small");
  o.model.width = 64;
  o.vocabulary = 500;
  o.batch_tokens = 600;
  o.precision = "f32";
  o.threads = 1;
  o.seconds = 0.2;
  return o;
}

TEST(Calibration, SeveralRanksMeasureAtOnce) {
  const Calibration c = calibrate(tiny(), 2);
  for (const double rate : {c.forward_gflops, c.backward_gflops, c.weights_gb_s, c.update_gb_s, c.memory_gb_s, c.coding_gb_s, c.jitter_ms})
    EXPECT_GT(rate, 0);
  EXPECT_GT(c.alone_speed, 0.2);
  EXPECT_LT(c.alone_speed, 20);
  EXPECT_GT(c.jitter, 0);
}

TEST(Calibration, AnErrorOfOneRankIsThatOfAll) {
  BenchTrainOptions o = tiny();
  o.model.width = 63;  // no multiple of the heads
  EXPECT_THROW(calibrate(o, 3), ConfigError);
}

}  // namespace
}  // namespace starling
