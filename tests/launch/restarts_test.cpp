// When a run is started again.
#include "launch/restarts.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace starling {
namespace {

using testing::HasSubstr;

TEST(Restarts, ContinueAsLongAsThereIsProgress) {
  RestartPolicy policy(5, 10);
  policy.begin(-1);
  for (const int64_t newest : {100, 200, 300, 400, 500}) {
    const auto d = policy.after(5, newest);
    EXPECT_TRUE(d.restart);
    EXPECT_EQ(d.pause_seconds, 10);
    EXPECT_EQ(d.why, "a rank was lost");
  }
  const auto last = policy.after(137, 600);
  EXPECT_FALSE(last.restart);
  EXPECT_EQ(last.why, "signal 9; 5 restarts (--restarts) are used up");
}

TEST(Restarts, PausesGrowWithoutProgressUntilItGivesUp) {
  RestartPolicy policy(100, 10);
  policy.begin(40);
  EXPECT_EQ(policy.after(5, 40).pause_seconds, 10);
  EXPECT_EQ(policy.after(5, 40).pause_seconds, 20);
  EXPECT_EQ(policy.after(5, 60).pause_seconds, 10);  // progress
  EXPECT_EQ(policy.after(5, 60).pause_seconds, 10);
  EXPECT_EQ(policy.after(5, 60).pause_seconds, 20);
  const auto last = policy.after(1, 60);
  EXPECT_FALSE(last.restart);
  EXPECT_THAT(last.why, HasSubstr("status 1; 3 starts in a row have made no newer checkpoint than that of update 60"));
}

TEST(Restarts, ARunThatNeverSavesIsGivenUp) {
  RestartPolicy policy(100, 1);
  policy.begin(std::nullopt);  // there is no directory yet
  EXPECT_TRUE(policy.after(5, -1).restart);
  EXPECT_TRUE(policy.after(5, -1).restart);
  EXPECT_THAT(policy.after(5, -1).why, HasSubstr("3 starts in a row have made no checkpoint"));
}

// On a host that does not see the run directory only the number of restarts is bounded.
TEST(Restarts, WhereProgressIsNotKnown) {
  RestartPolicy policy(8, 100);
  double longest = 0;
  for (int i = 0; i < 8; ++i) {
    const auto d = policy.after(5, std::nullopt);
    ASSERT_TRUE(d.restart) << i;
    EXPECT_GE(d.pause_seconds, longest);
    longest = d.pause_seconds;
  }
  EXPECT_EQ(longest, RestartPolicy::kLongestPause);
  EXPECT_FALSE(policy.after(5, std::nullopt).restart);
  RestartPolicy refused(100, 1);
  EXPECT_TRUE(refused.after(5, std::nullopt).restart);
  EXPECT_TRUE(refused.after(2, std::nullopt).restart);
  EXPECT_TRUE(refused.after(2, std::nullopt).restart);
  EXPECT_FALSE(refused.after(2, std::nullopt).restart);
}

// A signal to a rank may be that of a host that goes down; one to launch does not come here (MpirunEnd::stopped).
TEST(Restarts, WhatIsRefusedIsNotStartedAgain) {
  for (const int status : {0, 2, 4}) EXPECT_FALSE(RestartPolicy(9, 1).after(status, 10).restart) << status;
  for (const int status : {1, 3, 5, 128 + SIGKILL, 128 + SIGSEGV, 128 + SIGBUS, 128 + SIGTERM})
    EXPECT_TRUE(RestartPolicy(9, 1).after(status, 10).restart) << status;
  EXPECT_FALSE(RestartPolicy(0, 1).after(5, 10).restart);
  RestartPolicy later(9, 1);  // as when a rank that was left behind still has the directory
  later.begin(10);
  EXPECT_TRUE(later.after(5, 20).restart);
  const auto refused = later.after(2, 20);
  EXPECT_TRUE(refused.restart);
  EXPECT_EQ(refused.why, "the command was refused");
}

TEST(Restarts, RanksThatAreLeftMakeWholeReplicas) {
  EXPECT_EQ(whole_layouts(6, 4), 4);
  EXPECT_EQ(whole_layouts(8, 4), 8);
  EXPECT_EQ(whole_layouts(7, 1), 7);
  EXPECT_EQ(whole_layouts(3, 4), 3);
}

TEST(Restarts, FindTheNewestCheckpoint) {
  const std::string run = testing::TempDir() + "/restarts." + std::to_string(getpid());
  EXPECT_EQ(newest_checkpoint(run), std::nullopt);
  std::filesystem::create_directories(run + "/best");
  EXPECT_EQ(newest_checkpoint(run), -1);
  for (const char* name : {"step-00000020", "step-00000100", ".tmp-step-00000120"})
    std::filesystem::create_directories(run + "/checkpoints/" + name);
  EXPECT_EQ(newest_checkpoint(run), 100);
  std::filesystem::remove_all(run);
}

}  // namespace
}  // namespace starling
