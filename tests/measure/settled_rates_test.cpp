// Which of several measurements of a machine counts. The first example is a real one: a race kept 3.8 GFLOP/s backwards where two minutes
// before there had been 142.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "measure/calibration.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Calibration rates(double forward, double backward) {
  Calibration c;
  c.forward_gflops = forward, c.backward_gflops = backward;
  return c;
}

struct Outcome {
  double forward = 0, backward = 0;
  std::vector<std::string> said;
  size_t measured = 0;
};
Outcome settle(const std::vector<MeasuredRates>& measurements, double peak = 0) {
  Outcome o;
  const auto next = [&] { return measurements.at(o.measured++); };
  const Calibration c = settled_rates(next, peak, [&](const std::string& line) { o.said.push_back(line); });
  o.forward = c.forward_gflops, o.backward = c.backward_gflops;
  return o;
}

TEST(SettledRates, TwoThatAgreeCountAndTheFasterOneIsTaken) {
  const Outcome o = settle({{rates(120, 140), ""}, {rates(125, 142), ""}}, 200);
  EXPECT_EQ(o.backward, 142);
  EXPECT_EQ(o.measured, 2u);
  EXPECT_THAT(o.said, IsEmpty());
}

TEST(SettledRates, NonsenseIsMeasuredAgain) {
  const Outcome o = settle({{rates(125, 3.8), ""}, {rates(120, 140), ""}, {rates(125, 142), ""}}, 200);
  EXPECT_EQ(o.backward, 142);
  ASSERT_EQ(o.said.size(), 1u);
  EXPECT_THAT(o.said[0], HasSubstr("forward 125.0 and backward 3.8 GFLOP/s cannot both be right): measuring again"));
}

TEST(SettledRates, MoreThanTheMachineCanDoIsNonsenseToo) {
  const Outcome o = settle({{rates(300, 310), ""}, {rates(300, 310), ""}, {rates(120, 140), ""}, {rates(118, 139), ""}}, 200);
  EXPECT_EQ(o.forward, 120);
  EXPECT_THAT(o.said.at(0), HasSubstr("more than the 200.0 GFLOP/s of this machine's fastest products"));
}

TEST(SettledRates, WhatOtherProgramsDisturbedDoesNotCountThoughItAgrees) {
  const MeasuredRates disturbed{rates(60, 70), "other programs used 1.0 of 2 processors"};
  const Outcome o = settle({disturbed, disturbed, {rates(120, 140), ""}, {rates(119, 141), ""}});
  EXPECT_EQ(o.measured, 4u);
  EXPECT_GT(o.backward, 139);
  EXPECT_THAT(o.said.at(0), HasSubstr("(forward 60.0 and backward 70.0 GFLOP/s, but other programs used 1.0 of 2 processors): measuring"));
}

TEST(SettledRates, OneThatStandsAloneWaitsForASecond) {
  const Outcome o = settle({{rates(60, 70), ""}, {rates(120, 140), ""}, {rates(61, 71), ""}});
  EXPECT_EQ(o.backward, 71) << "the first and the third agree";
  EXPECT_THAT(o.said.at(0), HasSubstr("forward 120.0 and backward 140.0 GFLOP/s, and forward 60.0 and backward 70.0 GFLOP/s before"));
}

TEST(SettledRates, WithoutAnyAgreementTheFastestCountsWithAWarning) {
  std::vector<MeasuredRates> all;
  for (const double rate : {50.0, 100.0, 20.0, 200.0, 10.0}) all.push_back({rates(rate, rate), ""});
  const Outcome o = settle(all);
  EXPECT_EQ(o.forward, 200);
  EXPECT_EQ(o.said.size(), 4u) << "three times again, and the warning";
  EXPECT_THAT(o.said.back(), HasSubstr("warning: 5 measurements of the computing rates"));
  for (MeasuredRates& m : all) m.disturbance = "other programs used 2.0 of 2 processors";
  EXPECT_EQ(settle(all).forward, 200);
}

TEST(SettledRates, AMeasurementThatFailsIsRepeated) {
  int calls = 0;
  const Calibration c = settled_rates(
      [&]() -> MeasuredRates {
        if (++calls == 1) throw ConfigError("the steps are too short");
        return {rates(100, 100), ""};
      },
      0, {});
  EXPECT_EQ(c.forward_gflops, 100);
  EXPECT_THROW(settled_rates([]() -> MeasuredRates { throw ConfigError("the steps are too short"); }, 0, {}), ConfigError);
}

}  // namespace
}  // namespace starling
