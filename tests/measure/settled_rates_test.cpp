// Which of several measurements of a machine counts. The first example is a real one: a race kept 3.8 GFLOP/s backwards where two minutes
// before there had been 142.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "measure/calibration.h"
#include "measure/disturbance.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Outcome {
  std::vector<size_t> believed;  // counted from 10
  std::vector<std::string> said;
  size_t measured = 0;
};
Outcome settled(std::vector<MeasuredRates> measurements, double peak = 0) {
  Outcome o;
  for (size_t i = 0; i < measurements.size(); ++i) measurements[i].measurement = 10 + i;
  const auto next = [&] { return measurements.at(o.measured++); };
  o.believed = settle(next, peak, [&](const std::string& line) { o.said.push_back(line); });
  return o;
}
MeasuredRates measured(double forward, double backward, const std::string& disturbance = "") {
  MeasuredRates m;
  m.rates.forward_gflops = forward;
  m.rates.backward_gflops = backward;
  m.disturbance = disturbance;
  return m;
}

TEST(SettledRates, TwoThatAgreeCount) {
  const Outcome o = settled({measured(120, 140), measured(125, 142)}, 200);
  EXPECT_THAT(o.believed, ElementsAre(10, 11));
  EXPECT_EQ(o.measured, 2u);
  EXPECT_THAT(o.said, IsEmpty());
}

TEST(SettledRates, NonsenseIsMeasuredAgain) {
  const Outcome o = settled({measured(125, 3.8), measured(120, 140), measured(125, 142)}, 200);
  EXPECT_THAT(o.believed, ElementsAre(11, 12));
  ASSERT_EQ(o.said.size(), 1u);
  EXPECT_THAT(o.said[0], HasSubstr("forward 125.0 and backward 3.8 GFLOP/s cannot both be right): measuring again"));
}

TEST(SettledRates, MoreThanTheMachineCanDoIsNonsenseToo) {
  const Outcome o = settled({measured(300, 310), measured(300, 310), measured(120, 140), measured(118, 139)}, 200);
  EXPECT_THAT(o.believed, ElementsAre(12, 13));
  EXPECT_THAT(o.said.at(0), HasSubstr("more than the 200.0 GFLOP/s of this machine's fastest products"));
}

TEST(SettledRates, WhatOtherProgramsDisturbedDoesNotCountThoughItAgrees) {
  const MeasuredRates disturbed = measured(60, 70, "other programs used 1.0 of 2 processors");
  const Outcome o = settled({disturbed, disturbed, measured(120, 140), measured(119, 141)});
  EXPECT_EQ(o.measured, 4u);
  EXPECT_THAT(o.believed, ElementsAre(12, 13));
  EXPECT_THAT(o.said.at(0), HasSubstr("(forward 60.0 and backward 70.0 GFLOP/s, but other programs used 1.0 of 2 processors): measuring"));
}

TEST(SettledRates, OneThatStandsAloneWaitsForASecond) {
  const Outcome o = settled({measured(60, 70), measured(120, 140), measured(61, 71)});
  EXPECT_THAT(o.believed, ElementsAre(10, 12));
  EXPECT_THAT(o.said.at(0), HasSubstr("forward 120.0 and backward 140.0 GFLOP/s, and forward 60.0 and backward 70.0 GFLOP/s before"));
}

TEST(SettledRates, WithoutAnyAgreementTheFastestCountsWithAWarning) {
  std::vector<MeasuredRates> all;
  for (const double rate : {50.0, 100.0, 20.0, 200.0, 10.0}) all.push_back(measured(rate, rate));
  const Outcome o = settled(all);
  EXPECT_THAT(o.believed, ElementsAre(13));
  EXPECT_EQ(o.said.size(), 4u) << "three times again, and the warning";
  EXPECT_THAT(o.said.back(), HasSubstr("warning: 5 measurements of the computing rates"));
  for (MeasuredRates& m : all) m.disturbance = "other programs used 2.0 of 2 processors";
  EXPECT_THAT(settled(all).believed, ElementsAre(13));
}

TEST(SettledRates, AMeasurementThatFailsIsRepeated) {
  size_t calls = 0;
  const auto second = [&] {
    if (++calls == 1) throw ConfigError("the steps are too short");
    MeasuredRates m = measured(100, 100);
    m.measurement = calls;
    return m;
  };
  EXPECT_THAT(settle(second, 0, {}), ElementsAre(2, 3));
  EXPECT_THROW(settle([]() -> MeasuredRates { throw ConfigError("the steps are too short"); }, 0, {}), ConfigError);
}

// Two hosts of four processors for ten seconds; two ranks each, which are processes or threads of one.
std::vector<RankUse> undisturbed(bool processes) {
  std::vector<RankUse> ranks;
  for (int i = 0; i < 4; ++i)
    ranks.push_back({.host = i < 2 ? 7.0 : 8.0,
                     .process = processes ? 100.0 + i : 100,
                     .threads = 2,
                     .seconds = 10,
                     .idle_s = 2,
                     .own_s = processes ? 19.0 : 38.0,
                     .processors = 4});
  return ranks;
}

TEST(Disturbance, IsWhatNoRankOfTheHostUsed) {
  EXPECT_EQ(disturbance_of({}), "");
  for (const bool processes : {true, false}) {
    std::vector<RankUse> ranks = undisturbed(processes);
    EXPECT_EQ(disturbance_of(ranks), "");
    for (int i = 2; i < 4; ++i) ranks[static_cast<size_t>(i)].own_s -= processes ? 5 : 10;
    EXPECT_EQ(disturbance_of(ranks), "other programs used 1.0 of 4 processors");
    for (RankUse& rank : ranks) {
      rank.processors += 4;
      rank.idle_s += 40;
    }
    EXPECT_EQ(disturbance_of(ranks), "") << "processors are left for them";
    for (RankUse& rank : ranks) rank.processors = 0;
    EXPECT_EQ(disturbance_of(ranks), "") << "unknown";
  }
}

TEST(Disturbance, TheHostOfAVirtualMachineTakesProcessorsAwayToo) {
  std::vector<RankUse> ranks = undisturbed(true);
  for (int i = 0; i < 2; ++i) ranks[static_cast<size_t>(i)].stolen_s = 15;
  EXPECT_EQ(disturbance_of(ranks), "the host took 1.5 of 4 processors away");
}

}  // namespace
}  // namespace starling
