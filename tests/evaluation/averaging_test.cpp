// Profiles of averages: what each checkpoint weighs, in closed form.
#include "evaluation/averaging.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

namespace starling {
namespace {

using testing::ElementsAre, testing::DoubleNear, testing::Pointwise;

TEST(AverageProfiles, AreMeansOfTheLastAndPowersOfTheUpdate) {
  std::vector<int64_t> updates;
  for (int64_t i = 1; i <= 10; ++i) updates.push_back(100 * i);
  std::vector<std::string> names;
  for (const AverageProfile& p : average_profiles(updates)) {
    names.push_back(p.name);
    EXPECT_NEAR(std::accumulate(p.weights.begin(), p.weights.end(), 0.0), 1, 1e-12) << p.name;
    if (p.name == "the last 4") {
      EXPECT_THAT(p.weights, ElementsAre(0, 0, 0, 0, 0, 0, 0.25, 0.25, 0.25, 0.25));
    }
    if (p.name == "all 10 by power 2") {
      for (size_t i = 0; i < 10; ++i) EXPECT_NEAR(p.weights[i], std::pow(static_cast<double>(i) + 1, 2) / 385, 1e-12);
    }
  }
  EXPECT_THAT(names, ElementsAre("the last 1", "the last 2", "the last 3", "the last 4", "the last 6", "the last 8", "the last 10",
                                 "all 10 by power 1", "all 10 by power 2", "all 10 by power 4", "all 10 by power 8", "all 10 by power 16",
                                 "all 10 by power 32"));
}

// The average that power-function EMA has after update t, started at 0, weighs update i by (i / t)^gamma: beta(t) = (1 - 1/t)^(gamma + 1).
TEST(AverageProfiles, PowersAreWhatAnAverageWithAPowerFunctionProfileWeighs) {
  constexpr int64_t kUpdates = 4000;
  for (const double power : {1.0, 4.0}) {
    std::vector<double> weight(kUpdates + 1, 0.0);  // of each update's parameters in the running average
    for (int64_t t = 1; t <= kUpdates; ++t) {
      const double beta = std::pow(1 - 1 / static_cast<double>(t), power + 1);
      for (int64_t i = 1; i < t; ++i) weight[static_cast<size_t>(i)] *= beta;
      weight[static_cast<size_t>(t)] = 1 - beta;
    }
    // Ten checkpoints stand for the 400 updates around them.
    std::vector<int64_t> updates;
    for (int64_t i = 1; i <= 10; ++i) updates.push_back(400 * i - 200);
    for (const AverageProfile& p : average_profiles(updates)) {
      if (p.name != (power == 1.0 ? "all 10 by power 1" : "all 10 by power 4")) continue;
      for (size_t c = 0; c < 10; ++c) {
        double sum = 0;
        for (size_t i = 400 * c + 1; i <= 400 * (c + 1); ++i) sum += weight[i];
        EXPECT_NEAR(p.weights[c], sum, 0.01) << power << " " << c;
      }
    }
  }
}

TEST(AverageProfiles, OfFewAreFew) {
  const std::vector<int64_t> one{7}, two{7, 9};
  const std::vector<int64_t> unknown{0, 0, 0};
  EXPECT_EQ(average_profiles(one).size(), 1u);
  EXPECT_EQ(average_profiles(unknown).size(), 3u) << "no powers of no update";
  EXPECT_EQ(average_profiles(two).size(), 2u);
}

}  // namespace
}  // namespace starling
