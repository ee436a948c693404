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

TEST_F(TaskProgressTest, IsSilentForFiveSecondsAndThenSpeaksEverMoreSeldom) {
  std::vector<double> times;
  for (; now_ < 400; now_ += 0.5) {
    if (!progress_.due()) continue;
    progress_.tell(-1, "");
    times.push_back(now_ - 100);
  }
  EXPECT_THAT(times, ElementsAre(5, 8, 12, 18, 27, 40.5, 61, 91.5, 137.5, 197.5, 257.5));
  EXPECT_EQ(lines_[0], "data: 0:05 passed");
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

TEST_F(TaskProgressTest, CountsThingsWithTheirRate) {
  now_ = 104;
  progress_.count(10, 40, "sentences");
  progress_.count(4000, 0, "sentences");
  EXPECT_THAT(lines_, ElementsAre("data: 10 of 40 sentences, 2.5 a second, 25 %, 0:04 passed, about 0:12 left",
                                  "data: 4000 sentences, 1000 a second, 0:04 passed"));
}

// On a terminal one line is drawn again, and removed at the end; what ends within five seconds draws nothing.
TEST_F(TaskProgressTest, DrawsALiveLineAgainAndRemovesIt) {
  std::vector<std::string> drawn;
  std::vector<double> times;
  {
    TaskProgress live("data", TaskScreen{{}, [&](const std::string& text) { drawn.push_back(text); }}, [this] { return now_; });
    for (; now_ < 106; now_ += 0.0625) {
      if (!live.due()) continue;
      live.tell(0.5, "");
      times.push_back(now_ - 100);
    }
  }
  EXPECT_THAT(times, ElementsAre(5, 5.25, 5.5, 5.75));
  EXPECT_THAT(drawn, ElementsAre("data: 50 %, 0:05 passed, about 0:05 left", "data: 50 %, 0:05 passed, about 0:05 left",
                                 "data: 50 %, 0:06 passed, about 0:06 left", "data: 50 %, 0:06 passed, about 0:06 left", ""));
}

// Training draws its live line at once in place of its own, and its log file gets whole lines.
TEST_F(TaskProgressTest, DrawsAndWritesBoth) {
  std::vector<std::string> drawn;
  {
    TaskProgress both(
        "data",
        TaskScreen{[&](const std::string& text) { lines_.push_back(text); }, [&](const std::string& text) { drawn.push_back(text); }, 0},
        [this] { return now_; });
    for (; now_ < 111; now_ += 1)
      if (both.due()) both.tell(-1, "");
  }
  EXPECT_EQ(drawn.size(), 12u);
  EXPECT_THAT(lines_, ElementsAre("data: 0:05 passed", "data: 0:08 passed"));
}

TEST_F(TaskProgressTest, LeavesNoTraceOfWhatNeverDrew) {
  std::vector<std::string> drawn;
  {
    TaskProgress(std::string("data"), TaskScreen{{}, [&](const std::string& text) { drawn.push_back(text); }}, [this] { return now_; });
  }
  EXPECT_TRUE(drawn.empty());
}

TEST_F(TaskProgressTest, CanBeSilent) {
  TaskProgress silent("data", TaskScreen(), [this] { return now_; });
  now_ += 1000;
  EXPECT_FALSE(silent.due());
}

}  // namespace
}  // namespace starling
