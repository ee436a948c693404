#include "measure/rate_meter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "backend/backend.h"
#include "base/error.h"
#include "base/random.h"
#include "decode/model_directory.h"
#include "measure/calibration.h"
#include "measure/link.h"
#include "sim/simulate.h"

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

// A rank of a simulated cluster that trains by itself, in the cluster's time.
class Apart {
 public:
  Apart(World& cluster, const BenchTrainOptions& o) : backend_(make_backend("cpu:f32", 1)) {
    model_ = make_model(o.model, {o.vocabulary, o.vocabulary}, *backend_, 1, true);
    world_.comm = make_local_world().comm;
    world_.clock = std::make_unique<Lent>(*cluster.clock);
    StepOptions options;
    options.optimizer.learning_rate = 1e-4;
    replica_.emplace(*model_, options, world_);
  }
  Replica& replica() { return *replica_; }

 private:
  class Lent : public Clock {
   public:
    explicit Lent(Clock& clock) : clock_(clock) {}
    int64_t now_ns() const override { return clock_.now_ns(); }
    void begin(const Work& work) override { clock_.begin(work); }
    void end() override { clock_.end(); }

   private:
    Clock& clock_;
  };
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  World world_;
  std::optional<Replica> replica_;
};

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

// What the meter says of simulated ranks are the rates that they were given. Memory-bound work is measured outside of the simulation.
TEST(RateMeter, FindsTheRatesAndTheJitterOfASimulatedCluster) {
  Scenario s;
  s.ranks = 2;
  s.network.ranks_per_node = 2;
  s.compute = {.forward_gflops = 3, .backward_gflops = 2, .update_gb_s = 0.5, .memory_gb_s = 0.5, .piece_us = 0, .weights_gb_s = 0.25};
  BenchTrainOptions o = tiny();
  o.batch_tokens = 200;
  const auto measured = [&](const Scenario& scenario, int rounds) {
    Calibration found;
    simulate(scenario, [&](World& world) {
      Apart apart(world, o);
      RankPeers peers(*world.comm);
      Shares shares;
      for (Batch& batch : synthetic_batches(o, 2)) shares.push_back({std::move(batch)});
      RateMeter meter(apart.replica(), *world.clock, peers, std::move(shares), true);
      for (int i = 0; i < rounds; ++i) meter.round();
      if (world.comm->rank() == 0) found = meter.rates();
    });
    return found;
  };
  const Calibration exact = measured(s, 2);
  EXPECT_NEAR(exact.forward_gflops, 3, 0.01);
  EXPECT_NEAR(exact.backward_gflops, 2, 0.01);
  EXPECT_NEAR(exact.weights_gb_s, 0.25, 0.002);
  EXPECT_NEAR(exact.update_gb_s, 0.5, 0.1) << "an update's passes are rounded to eight";
  EXPECT_NEAR(exact.jitter, 0, 1e-6);
  EXPECT_NEAR(exact.drift, 0, 1e-6);
  EXPECT_NEAR(exact.alone_speed, 1, 1e-6);
  s.jitter = 0.05;
  s.jitter_ms = exact.jitter_ms;
  EXPECT_NEAR(measured(s, 20).jitter, 0.05, 0.015);
}

// Both directions at once, as ranks of a cluster have them.
TEST(Link, IsWhatTheSimulatedNetworkHas) {
  Scenario s;
  s.ranks = 3;
  s.network.inter = {.latency_us = 20, .bandwidth_gbit_s = 4, .message_us = 3};
  s.compute.memory_gb_s = 0;
  std::vector<LinkRates> found(3);
  double seconds = 0;
  simulate(s, [&](World& world) {
    found[static_cast<size_t>(world.comm->rank())] = measure_link(world);
    const Tensor gradients({3'000'000}, DType::f32);
    const Bucket all{.range = {0, gradients.count()}};
    const double took = time_all_reduce(world, gradients, {&all, 1}, Wire::f32, [] {});
    if (world.comm->rank() == 0) seconds = took;
  });
  for (const LinkRates& link : found) {
    EXPECT_NEAR(link.latency_s, 23e-6, 1e-7);
    EXPECT_NEAR(link.bandwidth, 0.5e9, 0.01e9);
  }
  EXPECT_NEAR(seconds, 4 * (12e6 / 3 / 0.5e9), 0.001) << "a ring of three sends a third four times";
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
