#include "train/due.h"

#include <gtest/gtest.h>

namespace starling {
namespace {

TEST(Due, EachKeyHasItsOwnUpdates) {
  Config config;
  config.valid.metrics = {"cross-entropy"};
  config.log.every = 10, config.valid.every = 4, config.checkpoint.every = 6, config.strategy.check_every = 5;
  for (const bool validates : {false, true}) {
    config.valid.source = config.valid.target = validates ? "valid" : "";
    for (int64_t step = 1; step <= 60; ++step) {
      const Due due = due_after(config, step, step, step - 1);
      EXPECT_EQ(due.reports, step == 1 || step % 10 == 0) << step;
      EXPECT_EQ(due.judges, validates && step % 4 == 0) << step;
      EXPECT_EQ(due.saves, step % 6 == 0) << step;
      EXPECT_EQ(due.compares, step % 5 == 0) << step;
      EXPECT_EQ(due.any(), due.reports || due.judges || due.saves || due.compares) << step;
    }
  }
}

// Updates of three batches: validations come after every fourth batch, or the update that takes it; logs go by updates.
TEST(Due, ValidationsAndCheckpointsGoByBatches) {
  Config config;
  config.valid.metrics = {"cross-entropy"};
  config.log.every = 2, config.valid.every = 4, config.checkpoint.every = 6, config.strategy.check_every = 0;
  config.valid.source = config.valid.target = "valid";
  std::vector<int64_t> judged, saved, reported;
  for (int64_t step = 1; step <= 8; ++step) {
    const Due due = due_after(config, step, 3 * step, 3 * (step - 1));
    if (due.judges) judged.push_back(step);
    if (due.saves) saved.push_back(step);
    if (due.reports) reported.push_back(step);
    EXPECT_FALSE(due.compares);
  }
  EXPECT_EQ(judged, (std::vector<int64_t>{2, 3, 4, 6, 7, 8}));  // batches 4, 8, 12, 16, 20 and 24 are in them
  EXPECT_EQ(saved, (std::vector<int64_t>{2, 4, 6, 8}));
  EXPECT_EQ(reported, (std::vector<int64_t>{1, 2, 4, 6, 8}));
}

}  // namespace
}  // namespace starling
