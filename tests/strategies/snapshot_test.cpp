// A replica that goes back to a snapshot goes on bit for bit as one that was never elsewhere, whatever its strategy and its layout.
#include <gtest/gtest.h>

#include "tests/strategies/divided.h"
#include "tests/strategies/variants.h"

namespace starling {
namespace {

void expect_equal_after_a_detour(TrainingRun run, int ranks) {
  const auto straight = simulated(run, ranks);
  run.detour_at = 4;
  const auto around = simulated(run, ranks);
  for (size_t r = 0; r < straight.size(); ++r) {
    SCOPED_TRACE(fmt::format("{} ranks, rank {}", ranks, r));
    EXPECT_TRUE(straight[r].values == around[r].values);
    EXPECT_TRUE(straight[r].first == around[r].first);
    EXPECT_TRUE(straight[r].second == around[r].second);
    EXPECT_EQ(straight[r].losses, around[r].losses);
    EXPECT_EQ(straight[r].rates, around[r].rates);
  }
  EXPECT_EQ(straight.size(), static_cast<size_t>(ranks));
}

class Snapshot : public testing::TestWithParam<Variant> {};

TEST_P(Snapshot, IsWhatTheReplicaWas) {
  TrainingRun run;
  run.strategy = GetParam().options;
  expect_equal_after_a_detour(run, 3 + GetParam().extra_ranks);
}

INSTANTIATE_TEST_SUITE_P(All, Snapshot, testing::ValuesIn(variants()), [](const auto& info) { return info.param.name; });

TEST(SnapshotOf, CompressedGradientsAndTheirResiduals) {
  TrainingRun run;
  run.strategy.name = "gradient-dropping";
  run.strategy.bucket_mib = 0.004;
  expect_equal_after_a_detour(run, 3);
}

TEST(SnapshotOf, MuonAndSgdAfterAdam) {
  TrainingRun run;
  run.optimizer = "muon";
  expect_equal_after_a_detour(run, 2);
  run.optimizer = "adam", run.sgd_after = 6;
  expect_equal_after_a_detour(run, 2);
}

TEST(SnapshotOf, ModelsInStagesAndShards) {
  TrainingRun run;
  run.layers = 2;
  run.parallel.pipeline = 2, run.parallel.micro_batches = 2;
  expect_equal_after_a_detour(run, 4);
  run.parallel = {};
  run.parallel.tensor = 2;
  expect_equal_after_a_detour(run, 2);
  run.parallel = {};
  run.model = "gnmt";
  run.tied = "none";
  expect_equal_after_a_detour(run, 2);
}

}  // namespace
}  // namespace starling
