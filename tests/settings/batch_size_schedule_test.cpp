// Batches that grow: the plan in closed form, by the noise in steps, and what contradicts it.
#include "settings/batch_size_schedule.h"

#include <gmock/gmock.h>

#include <limits>

#include "base/error.h"

namespace starling {
namespace {

using testing::ElementsAre, testing::HasSubstr;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// A measurement of that many target tokens.
NoiseScale noise_of(double tokens) {
  NoiseScale noise;
  for (int i = 0; i < 60 && tokens > 0; ++i) noise.add({tokens, 1, true});
  return noise;
}

// What each update takes until all is taken.
std::vector<int64_t> updates_of(BatchSizeSchedule growth, int64_t end, double noise = kNone) {
  std::vector<int64_t> taken;
  while (growth.taken() < end) {
    taken.push_back(growth.next());
    growth.updated(noise_of(noise));
  }
  return taken;
}

TEST(BatchSizeSchedule, DoublesAtSharesOfTheRunAndEndsWithIt) {
  TrainConfig train;
  train.batch_doubles_at = {0.3, 0.5};
  BatchSizeSchedule growth(train, 100, 13);
  // 3.9 batches: the fourth update is over when 4 are taken; 6.5: when 8 are.
  EXPECT_THAT(updates_of(growth, 13), ElementsAre(1, 1, 1, 1, 2, 2, 4, 1));
  EXPECT_EQ(growth.updates(), 8);
  for (int i = 0; i < 8; ++i) growth.updated({});
  EXPECT_EQ(growth.next(), 4) << "where epochs end the run there may be more than was reckoned";
  train.batch_doubles_at = {0, 0};
  EXPECT_THAT(updates_of(BatchSizeSchedule(train, 100, 9), 9), ElementsAre(4, 4, 1));
}

TEST(BatchSizeSchedule, RatesGrowByThePower) {
  TrainConfig train;
  train.batch_doubles_at = {0, 0, 0.5};
  for (const auto& [exponent, expected] : {std::pair(0.5, 2.0), {1.0, 4.0}, {0.0, 1.0}}) {
    train.batch_growth_exponent = exponent;
    EXPECT_DOUBLE_EQ(BatchSizeSchedule(train, 100, 100).rate_factor(), expected);
  }
}

TEST(BatchSizeSchedule, FollowsTheNoiseUpToItsLimitAndNeverBack) {
  TrainConfig train;
  train.batch_follows_noise = 850;
  BatchSizeSchedule growth(train, 100, 1000);
  const auto factor_after = [&](double noise) {
    growth.updated(noise_of(noise));
    return growth.factor();
  };
  EXPECT_EQ(factor_after(kNone), 1);
  EXPECT_EQ(factor_after(399), 1);  // twice the doubled batch are 400
  EXPECT_EQ(factor_after(401), 2);
  EXPECT_EQ(factor_after(100), 2);
  EXPECT_EQ(factor_after(1e6), 4);  // one doubling an update
  EXPECT_EQ(factor_after(1e6), 8);
  EXPECT_EQ(factor_after(1e9), 8);  // 1,600 are more than the limit
  EXPECT_EQ(growth.taken(), 1 + 1 + 1 + 2 + 2 + 4 + 8);
  State state;
  growth.save(state);
  BatchSizeSchedule other(train, 100, 1000);
  other.restore(state, 1);
  EXPECT_EQ(other.taken(), growth.taken());
  EXPECT_EQ(other.factor(), 8);
  BatchSizeSchedule half(train, 200, 500);  // with twice as many workers
  half.restore(state, 0.5);
  EXPECT_EQ(half.taken(), (growth.taken() + 1) / 2);
  EXPECT_EQ(half.factor(), 4) << "the same 800 tokens";
  BatchSizeSchedule twice(train, 50, 2000);
  twice.restore(state, 2);
  EXPECT_EQ(twice.factor(), 16);
  train.batch_follows_noise = 400;
  BatchSizeSchedule less(train, 100, 1000);
  less.restore(state, 1);
  EXPECT_EQ(less.factor(), 4) << "no more than the limit of today";
}

TEST(BatchSizeSchedule, TakesACheckpointOfARunThatDidNotGrow) {
  TrainConfig train;
  train.batch_doubles_at = {0.5};
  State state;
  state.put("step", 30);
  BatchSizeSchedule growth(train, 100, 100);
  growth.restore(state, 2);  // whose batches were twice as large
  EXPECT_EQ(growth.taken(), 60);
  EXPECT_EQ(growth.next(), 2);
}

TEST(BatchSizeSchedule, IsRefusedWhereItMeansNothing) {
  const auto refusal = [](const std::string& train, const std::string& strategy = "all-reduce") -> std::string {
    try {
      parse_config("train: {" + train + "}\nstrategy: {name: " + strategy + "}\n", "test");
      return "";
    } catch (const ConfigError& e) {
      return e.what();
    }
  };
  EXPECT_EQ(refusal("batch-doubles-at: [0.2, 0.5], max-tokens: 1000000"), "");
  EXPECT_EQ(refusal("batch-follows-noise: 16000, max-epochs: 3"), "");
  EXPECT_THAT(refusal("batch-doubles-at: [0.5, 0.2], max-tokens: 1000000"), HasSubstr("must be ascending"));
  EXPECT_THAT(refusal("batch-doubles-at: [0.5], max-steps: 100, max-tokens: 1000000"), HasSubstr("in place of train.max-steps"));
  EXPECT_THAT(refusal("batch-doubles-at: [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0], max-tokens: 1000000"), HasSubstr("give fewer shares"));
  EXPECT_THAT(refusal("batch-doubles-at: [0.5], max-minutes: 5, max-tokens: 1000000"), HasSubstr("leaves open"));
  EXPECT_THAT(refusal("batch-doubles-at: [0.5], max-tokens: 1000000, sgd-after: 5"), HasSubstr("leave one of them out"));
  EXPECT_THAT(refusal("batch-doubles-at: [0.5], max-tokens: 1000000", "diloco"), HasSubstr("not with diloco; choose one of those"));
}

TEST(BatchSizeSchedule, ItsExponentAloneIsIdle) {
  const auto idle = [](const std::string& train) { return idle_keys(parse_config("train: {" + train + "}\n", "test")); };
  EXPECT_THAT(idle("batch-growth-exponent: 0.3"),
              ElementsAre("train.batch-growth-exponent does nothing without train.batch-doubles-at or batch-follows-noise"));
  EXPECT_TRUE(idle("batch-growth-exponent: 0.3, batch-doubles-at: [0.5], max-tokens: 1000000").empty());
}

}  // namespace
}  // namespace starling
