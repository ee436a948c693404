#include "run/post_update_actions.h"

#include <gtest/gtest.h>

namespace starling {
namespace {

TEST(PostUpdateActions, EachKeyHasItsOwnUpdates) {
  Config config;
  config.valid.metrics = {"cross-entropy"};
  config.log.every = 10, config.valid.every = 4, config.checkpoint.every = 6, config.strategy.check_every = 5;
  for (const bool validates : {false, true}) {
    config.valid.source = config.valid.target = validates ? "valid" : "";
    for (int64_t step = 1; step <= 60; ++step) {
      const PostUpdateActions due = actions_after(config, distances(config, 1000), step, step, step - 1);
      EXPECT_EQ(due.reports, step == 1 || step % 10 == 0) << step;
      EXPECT_EQ(due.validates, validates && step % 4 == 0) << step;
      EXPECT_EQ(due.saves, step % 6 == 0) << step;
      EXPECT_EQ(due.compares, step % 5 == 0) << step;
      EXPECT_EQ(due.any(), due.reports || due.validates || due.saves || due.compares) << step;
    }
  }
}

// Updates of three batches: validations come after every fourth batch, or the update that takes it; logs go by updates.
TEST(PostUpdateActions, ValidationsAndCheckpointsGoByBatches) {
  Config config;
  config.valid.metrics = {"cross-entropy"};
  config.log.every = 2, config.valid.every = 4, config.checkpoint.every = 6, config.strategy.check_every = 0;
  config.valid.source = config.valid.target = "valid";
  std::vector<int64_t> judged, saved, reported;
  for (int64_t step = 1; step <= 8; ++step) {
    const PostUpdateActions due = actions_after(config, distances(config, 1000), step, 3 * step, 3 * (step - 1));
    if (due.validates) judged.push_back(step);
    if (due.saves) saved.push_back(step);
    if (due.reports) reported.push_back(step);
    EXPECT_FALSE(due.compares);
  }
  EXPECT_EQ(judged, (std::vector<int64_t>{2, 3, 4, 6, 7, 8}));  // batches 4, 8, 12, 16, 20 and 24 are in them
  EXPECT_EQ(saved, (std::vector<int64_t>{2, 4, 6, 8}));
  EXPECT_EQ(reported, (std::vector<int64_t>{1, 2, 4, 6, 8}));
}

// What the keys leave open comes ten times at least in a run of ten updates or more, and as far apart as ever in a long one.
TEST(PostUpdateActions, OpenDistancesFollowTheLengthOfTheRun) {
  Config config;
  config.valid.metrics = {"cross-entropy"}, config.valid.source = config.valid.target = "valid";
  for (const int64_t end : {10, 11, 19, 99, 101, 720, 5000, 9999}) {
    const Distances every = distances(config, end);
    int reports = 0, judged = 0, saved = 0;
    for (int64_t step = 1; step <= end; ++step) {
      const PostUpdateActions due = actions_after(config, every, step, step, step - 1);
      reports += due.reports, judged += due.validates, saved += due.saves;
    }
    EXPECT_GE(reports, 10) << end;
    EXPECT_GE(judged, 10) << end;
    EXPECT_GE(saved, 10) << end;
    EXPECT_LE(judged, 19) << end;
  }
  for (const int64_t end : {int64_t{10000}, int64_t{1000000}, kNoStepLimit}) {
    const Distances every = distances(config, end);
    EXPECT_EQ(every.reports, 100);
    EXPECT_EQ(every.validates, 1000);
    EXPECT_EQ(every.saves, 1000);
  }
  EXPECT_EQ(distances(config, 3).validates, 1);
  config.log.every = 7, config.valid.every = 8, config.checkpoint.every = 9;
  const Distances given = distances(config, 20);
  EXPECT_EQ(given.reports, 7);
  EXPECT_EQ(given.validates, 8);
  EXPECT_EQ(given.saves, 9);
}

// A run in minutes, as updates that each take so many; validations take so many updates' time.
class RunInMinutes {
 public:
  explicit RunInMinutes(const Config& config) : config_(config), by_time_(config) {}
  void run(double update, double validation, double until) {
    while (now_ < until) {
      now_ += update, ++step_;
      PostUpdateActions due = actions_after(config_, distances(config_, kNoStepLimit), step_, step_, step_ - 1);
      by_time_.add(due, now_ / shared_minutes(config_));
      if (due.reports) reports.push_back(now_);
      if (due.validates) judged.push_back(now_), now_ += validation;
      if (due.saves) saved.push_back(now_);
    }
  }
  ActionsByTime& by_time() { return by_time_; }
  std::vector<double> reports, judged, saved;

 private:
  const Config& config_;
  ActionsByTime by_time_;
  double now_ = 0;
  int64_t step_ = 0;
};

TEST(PostUpdateActions, ARunOfMinutesReportsWithinAMinuteAndValidatesAndSavesTenTimes) {
  Config config;
  config.valid.metrics = {"cross-entropy"}, config.valid.source = config.valid.target = "valid";
  config.train.max_minutes = 12;
  RunInMinutes slow(config);
  slow.run(0.1, 0.02, 12);
  EXPECT_LE(slow.reports.at(1), 1);
  EXPECT_GE(slow.reports.size(), 10u);
  EXPECT_GE(slow.judged.size(), 10u);
  EXPECT_GE(slow.saved.size(), 10u);
  EXPECT_LE(slow.judged.size(), 11u);
  // 12,000 updates, of which each thousandth is validated anyway: time adds nothing that is not later than that.
  RunInMinutes fast(config);
  fast.run(0.001, 0, 12);
  EXPECT_EQ(fast.judged.size(), 12u);
  // Three validations of a minute are a quarter of the run, and the last one follows its end.
  RunInMinutes dear(config);
  dear.run(0.01, 1, 12);
  EXPECT_EQ(dear.judged.size(), 2u);
  EXPECT_GE(dear.reports.size(), 10u);
  // A day: reports five minutes apart, checkpoints thirty.
  config.train.max_minutes = 1440;
  RunInMinutes day(config);
  day.run(0.9, 0.1, 1440);
  EXPECT_GE(day.reports.size(), 1440u / 6);
  EXPECT_LE(day.reports.size(), 1440u / 5 + 1);
  EXPECT_NEAR(static_cast<double>(day.saved.size()), 1440 / 30, 3);
}

TEST(PostUpdateActions, KeysThatAreGivenAreNotDueByTheTime) {
  Config config;
  config.valid.metrics = {"cross-entropy"}, config.valid.source = config.valid.target = "valid";
  config.train.max_minutes = 12, config.log.every = config.valid.every = config.checkpoint.every = 1000;
  EXPECT_FALSE(ActionsByTime(config).asked());
  RunInMinutes given(config);
  given.run(0.1, 0, 12);
  EXPECT_EQ(given.judged.size() + given.saved.size(), 0u);
  config.checkpoint.minutes = 2;
  RunInMinutes saves(config);
  saves.run(0.1, 0, 12);
  EXPECT_EQ(saves.saved.size(), 5u);
  EXPECT_EQ(saves.judged.size(), 0u);
  config.train.max_minutes = 0;  // without a limit too
  EXPECT_TRUE(ActionsByTime(config).asked());
  RunInMinutes endless(config);
  endless.run(0.1, 0, 60);
  EXPECT_NEAR(static_cast<double>(endless.saved.size()), 29, 1);
}

TEST(PostUpdateActions, OneOpenKeyIsEnoughToLookAtTheTime) {
  Config config;
  config.valid.metrics = {"cross-entropy"}, config.valid.source = config.valid.target = "valid";
  config.train.max_minutes = 12;
  for (int64_t* open : {&config.log.every, &config.valid.every, &config.checkpoint.every}) {
    config.log.every = config.valid.every = config.checkpoint.every = 1000, *open = 0;
    EXPECT_TRUE(ActionsByTime(config).asked());
  }
}

TEST(PostUpdateActions, AContinuedRunIsDueWhereItWouldHaveBeen) {
  Config config;
  config.valid.metrics = {"cross-entropy"}, config.valid.source = config.valid.target = "valid";
  config.train.max_minutes = 12;
  RunInMinutes whole(config), parts(config);
  whole.run(0.1, 0.02, 12);
  parts.run(0.1, 0.02, 5);
  State state;
  parts.by_time().save(state);
  parts.by_time() = ActionsByTime(config);
  parts.by_time().restore(State::from_json(state.to_json(), "state"));
  parts.run(0.1, 0.02, 12);
  EXPECT_EQ(parts.judged, whole.judged);
  EXPECT_EQ(parts.saved, whole.saved);
  EXPECT_EQ(parts.reports, whole.reports);
  // What validations have taken counts on.
  RunInMinutes dear(config), again(config);
  dear.run(0.1, 0.5, 12);
  again.run(0.1, 0.5, 4);
  state = State();
  again.by_time().save(state);
  again.by_time() = ActionsByTime(config);
  again.by_time().restore(State::from_json(state.to_json(), "state"));
  again.run(0.1, 0.5, 12);
  EXPECT_EQ(again.judged, dear.judged);
  EXPECT_LE(0.5 * static_cast<double>(dear.judged.size() + 1), 12.0 / 4);
  EXPECT_GE(dear.judged.size(), 3u);
}

}  // namespace
}  // namespace starling
