#include "base/duration.h"

#include <gtest/gtest.h>

namespace starling {
namespace {

TEST(Duration, HasNumbersWithUnits) {
  const struct {
    const char* text;
    double seconds;
  } cases[] = {{"12m", 720},     {"12min", 720}, {"12 min", 720},  {"5m", 300},    {"1h", 3600},   {"1h30m", 5400},
               {"1h 30m", 5400}, {"1.5h", 5400}, {"90s", 90},      {"1m30s", 90},  {"2d", 172800}, {"1d12h", 129600},
               {"200ms", 0.2},   {"5us", 5e-6},  {"1s500ms", 1.5}, {" 12m ", 720}, {"0s", 0},      {"1h0m30s", 3630}};
  for (const auto& [text, seconds] : cases) {
    ASSERT_TRUE(duration_seconds(text).has_value()) << text;
    EXPECT_DOUBLE_EQ(*duration_seconds(text), seconds) << text;
  }
}

TEST(Duration, IsNothingElse) {
  for (const char* text :
       {"", " ", "12", "m", "12x", "-5m", "5m-3s", "1e3s", "30m1h", "5m5m", "5m5min", "1h30", "nan s", "inf", "12M", "1,5h"})
    EXPECT_FALSE(duration_seconds(text).has_value()) << text;
}

TEST(Duration, UnitsAreTheLastPartOfAName) {
  EXPECT_EQ(unit_of_name("max-minutes"), 60);
  EXPECT_EQ(unit_of_name("deadline-seconds"), 1);
  EXPECT_EQ(unit_of_name("at-s"), 1);
  EXPECT_EQ(unit_of_name("latency-us"), 1e-6);
  EXPECT_FALSE(unit_of_name("max-steps"));
  EXPECT_FALSE(unit_of_name("memory-gb-s"));
  EXPECT_FALSE(unit_of_name("bandwidth-gbit-s"));
  EXPECT_FALSE(unit_of_name("s"));
  EXPECT_FALSE(unit_of_name("update-gb-s"));
}

}  // namespace
}  // namespace starling
