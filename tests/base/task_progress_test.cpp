// Signs of life: when they come and what they say, by a clock of the test.
#include "base/task_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace starling {
namespace {

using ::testing::ElementsAre;

class TaskProgressTest : public ::testing::Test {
 protected:
  double now_ = 100;
  std::vector<std::string> lines_;
  TaskProgress progress_{"data", [this](const std::string& line) { lines_.push_back(line); }, [this] { return now_; }};
};

TEST_F(TaskProgressTest, IsSilentForTwoSecondsAndThenSpeaksEverMoreSeldom) {
  std::vector<double> times;
  for (; now_ < 400; now_ += 0.5) {
    if (!progress_.due()) continue;
    progress_.tell(-1, "");
    times.push_back(now_ - 100);
  }
  EXPECT_THAT(times, ElementsAre(2, 5, 8, 12, 18, 27, 40.5, 61, 91.5, 137.5, 197.5, 257.5));
  EXPECT_EQ(lines_[0], "data: 0:02 passed");
}

TEST_F(TaskProgressTest, TellsShareAndTimeLeft) {
  now_ = 110;
  progress_.tell(0.01, "1 pair");  // too little to tell
  progress_.tell(0.25, "7 pairs");
  progress_.estimate_from(0.5);
  now_ = 120;
  progress_.tell(0.6, "8 pairs");  // a tenth in ten seconds
  EXPECT_THAT(lines_, ElementsAre("data: 1 pair, 1 %, 0:10 passed", "data: 7 pairs, 25 %, 0:10 passed, about 0:30 left",
                                  "data: 8 pairs, 60 %, 0:20 passed, about 0:40 left"));
}

TEST_F(TaskProgressTest, CanBeSilent) {
  TaskProgress silent("data", {}, [this] { return now_; });
  now_ += 1000;
  EXPECT_FALSE(silent.due());
}

}  // namespace
}  // namespace starling
