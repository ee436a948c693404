// The guard in whole runs: a rate that is too high is lowered, runs repeat bit for bit, and resumed ones are those that went on.
#include <gmock/gmock.h>

#include "base/text_files.h"
#include "run/trainer.h"
#include "storage/checkpoint.h"
#include "tests/run/trainer_fixture.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;

class GuardTest : public TrainerTest {
 protected:
  Config high(const std::string& run) const {
    Config c = config(run);
    c.guard.mode = GuardMode::act;
    c.guard.snapshot_every = 20;
    c.train.max_steps = 300, c.train.optimizer.warmup = 30, c.train.optimizer.learning_rate = 1, c.train.optimizer.clip_norm = 1;
    c.checkpoint.every = 100;
    return c;
  }
  std::string log(const std::string& run) const { return read_text_file(path(run) + "/train.log"); }
};

TEST_F(GuardTest, ARateThatIsTooHighIsLoweredAndTheRunRepeats) {
  for (const char* run : {"one", "two"}) ASSERT_EQ(run_training(high(run)), 0);
  EXPECT_THAT(log("one"), HasSubstr("guard: the loss rises: "));
  EXPECT_THAT(log("one"), HasSubstr("(rescue 2 of 8)"));
  EXPECT_EQ(hash("one", "00000300", "rank-0.safetensors"), hash("two", "00000300", "rank-0.safetensors"));
  EXPECT_THAT(read_text_file(path("one") + "/events.jsonl"), HasSubstr("\"type\":\"guard\""));
}

// A checkpoint of a later update that the run has gone back from would be the newest one for a resume.
TEST_F(GuardTest, CheckpointsThatItHasGoneBackFromVanish) {
  Config c = high("run");
  c.checkpoint.every = 10, c.checkpoint.keep = 2, c.train.max_steps = 60, c.train.optimizer.learning_rate = 20;
  ASSERT_EQ(run_training(c), 0);
  const auto files = real_file_system();
  EXPECT_EQ(files->list(path("run") + "/checkpoints"), (std::vector<std::string>{"step-00000050", "step-00000060"}));
  const std::string events = read_text_file(path("run") + "/events.jsonl");
  const size_t back = events.find("\"back_to\":0");
  ASSERT_NE(back, std::string::npos);
  const size_t saved = events.find("\"type\":\"checkpoint\"", back);
  EXPECT_THAT(events.substr(saved, events.find('\n', saved) - saved), HasSubstr("\"step\":0,")) << "saved at once";
  EXPECT_EQ(latest_checkpoint(*files, path("run"))->step, 60);
}

TEST_F(GuardTest, AResumedRunIsTheOneThatWentOn) {
  Config c = high("whole");
  c.train.max_steps = 200, c.train.optimizer.learning_rate = 20;
  ASSERT_EQ(run_training(c), 0);
  c.train.output = path("parts");
  for (const int64_t to : {100, 200}) {
    c.train.max_steps = to;
    ASSERT_EQ(run_training(c), 0);
  }
  EXPECT_THAT(log("parts"), HasSubstr("(rescue 2 of 8)"));
  EXPECT_EQ(hash("whole", "00000200", "rank-0.safetensors"), hash("parts", "00000200", "rank-0.safetensors"));
}

TEST_F(GuardTest, HealthyRunsAreTheSameWithIt) {
  Config c = config("off");
  c.guard.mode = GuardMode::off;
  ASSERT_EQ(run_training(c), 0);
  c = config("act");
  c.guard.mode = GuardMode::act;
  ASSERT_EQ(run_training(c), 0);
  EXPECT_THAT(log("act"),
              HasSubstr("guard: goes back to a snapshot where the loss diverges, 8 times at most; a snapshot every 100 updates"));
  EXPECT_THAT(log("act"), Not(HasSubstr("rescue")));
  EXPECT_EQ(hash("off", "00000030", "rank-0.safetensors"), hash("act", "00000030", "rank-0.safetensors"));
}

TEST_F(GuardTest, WhatItCannotGoBackInIsRefused) {
  const auto refusal = [](const std::string& more) {
    try {
      parse_config("guard:\n  mode: act\n" + more, "test");
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal(""), "");
  EXPECT_THAT(refusal("strategy:\n  name: bmuf\n"),
              HasSubstr("with strategy bmuf each rank has a state of its own; set guard.mode to warn"));
  EXPECT_THAT(refusal("train:\n  batch-follows-noise: 100000\n"), HasSubstr("the batch grows"));
}

}  // namespace
}  // namespace starling
