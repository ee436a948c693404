// Some hundred seeds of faults; bench/nights.sh takes ten thousand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/faults/night.h"

namespace starling {
namespace {

class NightsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { nights_ = new Nights(); }
  static void TearDownTestSuite() { delete std::exchange(nights_, nullptr); }
  static Nights* nights_;
};
Nights* NightsTest::nights_ = nullptr;

TEST_F(NightsTest, WithoutFaultsSeveralWorkersDoWhatOneDoes) { EXPECT_THAT(nights_->wrong_undisturbed(), testing::IsEmpty()); }

TEST_F(NightsTest, WhateverGoesWrongTheRunEndsAsTheUndisturbedOne) {
  Night all;
  for (uint64_t seed = 0; seed < 190; ++seed) {
    const Night night = nights_->spend(seed);
    EXPECT_THAT(night.wrong, testing::IsEmpty()) << "seed " << seed << "; repeat it: test_faults --seeds " << seed << " 1";
    for (const auto& [what, n] : night.happened) all.happened[what] += n;
  }
  // Faults that do not happen prove nothing.
  for (const char* what :
       {"slow ranks", "networks cut", "slow links", "messages lost", "messages delayed", "messages doubled", "ranks killed",
        "other numbers of ranks", "told to stop", "ranks without the directory", "power cuts", "failing operations", "torn writes",
        "saves that failed", "deadlines", "machines started again", "corrupt files"})
    EXPECT_GT(all.happened[what], 0) << what;
}

}  // namespace
}  // namespace starling
