// Some hundred seeds of faults; bench/fault_runs.sh takes ten thousand.
#include "tests/faults/fault_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace starling {
namespace {

class FaultRunsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { runs_ = new FaultRuns(); }
  static void TearDownTestSuite() { delete std::exchange(runs_, nullptr); }
  static FaultRuns* runs_;
};
FaultRuns* FaultRunsTest::runs_ = nullptr;

TEST_F(FaultRunsTest, WithoutFaultsSeveralWorkersDoWhatOneDoes) { EXPECT_THAT(runs_->wrong_undisturbed(), testing::IsEmpty()); }

TEST_F(FaultRunsTest, WhateverGoesWrongTheRunEndsAsTheUndisturbedOne) {
  FaultRun all;
  for (uint64_t seed = 0; seed < 133; ++seed) {
    const FaultRun run = runs_->run(seed);
    EXPECT_THAT(run.wrong, testing::IsEmpty()) << "seed " << seed << "; repeat it: test_faults --seeds " << seed << " 1 --logs";
    for (const auto& [what, n] : run.happened) all.happened[what] += n;
  }
  // Faults that do not happen prove nothing.
  for (const char* what :
       {"slow ranks", "networks cut", "slow links", "messages lost", "messages delayed", "messages doubled", "ranks killed",
        "other numbers of ranks", "told to stop", "ranks without the directory", "power cuts", "failing operations", "torn writes",
        "saves that failed", "full disks", "deadlines", "machines started again", "corrupt files"})
    EXPECT_GT(all.happened[what], 0) << what;
}

// A few of the kills of bench/kill_runs.sh.
TEST_F(FaultRunsTest, WhereverItIsKilledTheRunEndsAsTheUndisturbedOne) {
  int64_t kinds[3] = {};
  size_t next = 0;
  for (const Layout& layout : layouts()) {
    const std::vector<Kill> kills = all_kills(layout, runs_->extent(layout));
    for (; next < kills.size(); next += 1009) {
      ++kinds[kills[next].where];
      EXPECT_THAT(runs_->run(layout, {kills[next].attempt}).wrong, testing::IsEmpty())
          << layout.name << "; repeat it: test_faults --kill '" << layout.name << "' " << next;
    }
    next -= kills.size();
  }
  for (const int64_t n : kinds) EXPECT_GT(n, 0);
}

}  // namespace
}  // namespace starling
