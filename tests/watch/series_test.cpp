// Series of any length in few points.
#include "watch/series.h"

#include <gtest/gtest.h>

namespace starling {
namespace {

std::vector<int64_t> steps(const Series& series) { return series.json()["step"].get<std::vector<int64_t>>(); }
std::vector<double> values(const Series& series) { return series.json()["value"].get<std::vector<double>>(); }

TEST(Series, KeepsAFewValuesAsTheyAre) {
  Series series;
  EXPECT_TRUE(series.empty());
  for (int i = 1; i <= 5; ++i) series.add(10 * i, 1.0 / i);
  EXPECT_EQ(steps(series), (std::vector<int64_t>{10, 20, 30, 40, 50}));
  EXPECT_EQ(values(series), (std::vector<double>{1, 0.5, 1.0 / 3, 0.25, 0.2}));
}

// A single peak and a single dip among 100,000 values are still there, at their updates, and the points are in order.
TEST(Series, KeepsPeaksOfAHundredThousandValues) {
  Series series;
  for (int i = 1; i <= 100'000; ++i) series.add(i, i == 33'333 ? 99 : i == 77'777 ? -99 : 1 + (i % 7) * 0.01);
  const std::vector<int64_t> at = steps(series);
  const std::vector<double> all = values(series);
  EXPECT_LE(at.size(), Series::kMostPoints + 1);
  EXPECT_GE(at.size(), Series::kMostPoints / 2);
  EXPECT_TRUE(std::is_sorted(at.begin(), at.end()));
  const auto peak = std::max_element(all.begin(), all.end()), dip = std::min_element(all.begin(), all.end());
  EXPECT_EQ(*peak, 99);
  EXPECT_EQ(at[static_cast<size_t>(peak - all.begin())], 33'333);
  EXPECT_EQ(*dip, -99);
  EXPECT_EQ(at[static_cast<size_t>(dip - all.begin())], 77'777);
  EXPECT_EQ(at.back(), 100'000);
  EXPECT_EQ(all.back(), 1 + (100'000 % 7) * 0.01);
}

TEST(Series, ForgetsWhatAResumedRunSaysAgain) {
  Series series;
  for (int i = 1; i <= 10'000; ++i) series.add(i, i);
  series.forget_after(5'000);
  ASSERT_FALSE(series.empty());
  EXPECT_LE(steps(series).back(), 5'000);
  EXPECT_GT(steps(series).back(), 4'900);
  for (int i = 5'001; i <= 5'100; ++i) series.add(i, -i);
  EXPECT_TRUE(std::ranges::is_sorted(steps(series)));
  EXPECT_GT(steps(series).back(), 5'050);
  series.forget_after(0);
  EXPECT_TRUE(series.empty());
}

}  // namespace
}  // namespace starling
