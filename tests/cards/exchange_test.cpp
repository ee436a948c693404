// `starling bench exchange` on emulated cards: what it times is what it says.
#include "measure/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "tests/cards/thread_world.h"
#include "tests/emulated/emulator.h"

namespace starling {
namespace {

// A ring of two ranks has two rounds a bucket, each a group of NCCL's calls on either card, and its own all-reduce one group a bucket.
TEST(BenchExchange, TimesRingAndLibraryOnConnectedCards) {
  constexpr int kRanks = 2;
  BenchExchangeOptions options;
  options.device = "cuda", options.mib = 0.5, options.bucket_mib = {0.125, 1}, options.rounds = 3;
  const auto groups_of = [&](std::vector<Algorithm> algorithms) {
    options.algorithms = std::move(algorithms);
    const int64_t before = emulated_cuda::calls().groups;
    int64_t after = 0;
    run_threads(kRanks, [&](World& world) {
      const BenchExchangeResult r = bench_exchange(options, world);
      EXPECT_THAT(r.connection, testing::HasSubstr("2 cards are connected by NCCL"));
      ASSERT_EQ(r.times.size(), 2 * options.algorithms.size());
      for (size_t i = 0; i < r.times.size(); ++i) {
        EXPECT_EQ(r.times[i].algorithm, options.algorithms[i / 2]);
        EXPECT_EQ(r.times[i].bucket_mib, options.bucket_mib[i % 2]);
        EXPECT_GT(r.times[i].seconds, 0);
        EXPECT_LT(r.times[i].seconds, 60);
      }
      EXPECT_EQ(r.ranks, kRanks);
      if (world.comm->rank() == 0) after = emulated_cuda::calls().groups;
    });
    return after - before;
  };
  const int64_t rounds = options.rounds + 1, connecting = groups_of({});
  EXPECT_EQ(groups_of({Algorithm::ring}) - connecting, rounds * kRanks * 2 * (4 + 1));
  EXPECT_EQ(groups_of({Algorithm::library}) - connecting, rounds * kRanks * (4 + 1));
  for (const char* name : {"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING", "NCCL_RUNTIME_CONNECT"}) unsetenv(name);  // as they were
}

TEST(BenchExchange, OneRankHasNothingToExchange) {
  World world = make_local_world();
  EXPECT_THROW(bench_exchange({}, world), ConfigError);
}

}  // namespace
}  // namespace starling
