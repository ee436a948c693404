// What of a run changes in its course: schedules with an end, batches that grow, the change to SGD. Resumed in the middle they equal the
// uninterrupted run bit for bit.
#include <gmock/gmock.h>

#include <csignal>
#include <map>
#include <nlohmann/json.hpp>

#include "run/trainer.h"
#include "tests/run/trainer_fixture.h"
#include "tests/run/word_pairs.h"

namespace starling {
namespace {

using testing::HasSubstr, testing::Not;

TEST_F(TrainerTest, BatchesThatGrowAreContinuedBitForBit) {
  write_unrelated(path("other.a"), path("other.b"), 600);
  const auto with = [&](const std::string& run) {
    Config c = config(run);
    c.train.max_steps = 0, c.train.max_tokens = 150 * 16, c.train.batch_tokens = 16, c.train.beta2_tokens = 800;
    c.data.train = {{path("other.a"), path("other.b"), "", 1}};
    c.train.micro_batch_tokens = 8;  // so that the noise can be measured
    c.train.batch_doubles_at = {0.7, 0.85}, c.train.batch_follows_noise = 32;
    c.train.optimizer.schedule = RateSchedule::linear, c.train.optimizer.learning_rate = 1e-2, c.log.every = 1;
    c.valid.every = c.checkpoint.every = 50, c.valid.metrics = {"cross-entropy"};
    return c;
  };
  EXPECT_EQ(run_training(with("whole")), 0);
  int64_t steps = 0, tokens = 0, grown = 0;
  std::map<int64_t, double> rates;
  std::ifstream events(path("whole") + "/events.jsonl");
  for (std::string line; std::getline(events, line);) {
    const auto event = nlohmann::json::parse(line);
    grown += event.at("type") == "batch";
    if (event.at("type") != "report") continue;
    steps = event.at("step"), tokens += event.at("target_tokens").get<int64_t>();
    rates[steps] = event.at("learning_rate");
  }
  EXPECT_LT(steps, 105 + 12 + 6) << "as many as without the noise";
  EXPECT_GE(grown, 2);
  EXPECT_NEAR(static_cast<double>(tokens), 150 * 16, 150 * 4) << "batches are full but for their last sentence";
  EXPECT_NEAR(rates.at(10), 1e-2, 1e-9) << "the warm-up has ended";
  EXPECT_NEAR(rates.at(30), 1e-2 * 120 / 140, 1e-9);
  EXPECT_NEAR(rates.at(steps), 0, 1e-9);
  const std::string last = fmt::format("{:08}", steps);
  TrainingWatch watch;
  World world = make_local_world();
  for (const int64_t stop : {steps - 9, steps - 2}) {
    watch.updated = [stop](int64_t step, int64_t, int64_t) {
      if (step == stop) std::raise(SIGTERM);
    };
    EXPECT_EQ(run_training(with("parts"), world, watch), 128 + SIGTERM);
  }
  EXPECT_EQ(run_training(with("parts")), 0);
  for (const char* file : {"model.safetensors", "rank-0.safetensors"})
    EXPECT_EQ(hash("whole", last, file), hash("parts", last, file)) << file;
  EXPECT_EQ(run_training(with("parts")), 0);  // nothing to do
}

// Epochs have different numbers of batches, so where they end the run its end in batches is an estimate.
TEST_F(TrainerTest, BatchesThatGrowEndWithTheirEpochs) {
  Config c = config("epochs");
  c.train.max_steps = 0, c.train.max_epochs = 3, c.train.batch_tokens = 100, c.train.batch_doubles_at = {0.4, 0.8};
  c.train.optimizer.schedule = RateSchedule::constant, c.log.every = 1;
  EXPECT_EQ(run_training(c), 0);
  std::ifstream log(path("epochs") + "/train.log");
  const std::string text((std::istreambuf_iterator<char>(log)), {});
  EXPECT_THAT(text, HasSubstr("complete: train.max-epochs 3"));
  EXPECT_THAT(text, HasSubstr("the batch doubles after 40 % of the run, after 80 % of the run; warm-up and schedule count batches of 100"));
  EXPECT_THAT(text, HasSubstr("on 400 target tokens per update, and the learning rate times 2\n"));
  EXPECT_THAT(text, HasSubstr("lr 6.000e-03")) << "twice the rate of the first batches";
  // Where it would lose its place it does not go on.
  c.train.batch_doubles_at.clear(), c.train.max_epochs = 4;
  try {
    run_training(c);
    ADD_FAILURE() << "went on";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("the batch of this run has grown"));
  }
  c = config("endless"), c.train.max_steps = 0, c.train.batch_follows_noise = 1000;
  EXPECT_THROW(run_training(c), ConfigError);
  c.train.max_tokens = 10000, c.train.batch_follows_noise = 300;
  EXPECT_THROW(run_training(c), ConfigError) << "twice 200 are more";
}

// Two batches an update forget twice as much: a beta2 of a half for one batch is a quarter.
TEST_F(TrainerTest, Beta2ByTokensFollowsTheBatch) {
  const auto trained = [&](const std::string& run, int64_t beta2_tokens, double beta2) {
    Config c = config(run);
    c.train.max_steps = 0, c.train.max_tokens = 10 * 100, c.train.batch_tokens = 100, c.train.batch_doubles_at = {0};
    c.train.beta2_tokens = beta2_tokens, c.train.optimizer.beta2 = beta2, c.valid.metrics = {"cross-entropy"};
    EXPECT_EQ(run_training(c), 0);
    return hash(run, "00000005", "rank-0.safetensors");
  };
  const std::string by_tokens = trained("tokens", 100, 0.98);
  EXPECT_EQ(by_tokens, trained("quarter", 0, 0.25));
  EXPECT_NE(by_tokens, trained("half", 0, 0.5));
}

TEST_F(TrainerTest, TheChangeFromAdamToSgdIsContinuedBitForBit) {
  const auto with = [&](const std::string& run, int64_t steps) {
    Config c = config(run);
    c.train.max_steps = steps, c.train.optimizer.loss_normalization = LossNormalization::sentences;
    c.train.optimizer.sgd_after = 13, c.train.optimizer.sgd_learning_rate = 0.05, c.train.optimizer.sgd_clip_norm = 1;
    c.train.optimizer.sgd_halve_after = 4, c.train.optimizer.sgd_halve_every = 3;
    return c;
  };
  EXPECT_EQ(run_training(with("whole", 30)), 0);
  for (const int64_t stop : {7, 13, 14, 22, 30}) EXPECT_EQ(run_training(with("parts", stop)), 0);
  for (const char* file : {"model.safetensors", "rank-0.safetensors"})
    EXPECT_EQ(hash("whole", "00000030", file), hash("parts", "00000030", file)) << file;
  for (const char* run : {"whole", "parts"}) {
    std::ifstream log(path(run) + "/train.log");
    const std::string text((std::istreambuf_iterator<char>(log)), {});
    const std::string change =
        "13 updates of adam done; from here on plain SGD: learning rate 0.05 with halvings, gradient clipped to norm 1";
    const size_t at = text.find(change);
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_EQ(text.find("plain SGD", at + change.size()), std::string::npos) << "told twice";
    // Halved after 4 updates and then every 3, at updates 18, 21 and 24; update 25 is in the log.
    EXPECT_NE(text.find("lr 6.250e-03"), std::string::npos) << text;
  }
}

TEST_F(TrainerTest, SchedulesWithAnEndAreContinuedBitForBitAndSayWhenTheEndMoves) {
  const auto with = [&](const std::string& run) {
    Config c = config(run);
    c.train.optimizer.schedule = RateSchedule::linear, c.train.beta2_tokens = 5000;
    c.data.subword_alpha = 0.3;     // drawn by epoch and sentence, so it does not depend on where a run begins
    c.train.max_tokens = 30 * 200;  // 30 updates, fewer than max-steps
    c.train.max_steps = 100;
    return c;
  };
  const auto log = [&](const std::string& run) {
    std::ifstream in(path(run) + "/train.log");
    return std::string((std::istreambuf_iterator<char>(in)), {});
  };
  EXPECT_EQ(run_training(with("whole")), 0);
  EXPECT_THAT(log("whole"), HasSubstr("after 10 updates of warm-up"));
  EXPECT_THAT(log("whole"), HasSubstr("; then linear, to 0 at update 30"));
  EXPECT_THAT(log("whole"), HasSubstr("lr 7.500e-04"));  // of update 25: a quarter of what is left after the warm-up
  EXPECT_THAT(log("whole"), HasSubstr("complete: train.max-tokens 6000: 30 updates"));
  TrainingWatch watch;
  watch.updated = [](int64_t step, int64_t, int64_t) {
    if (step == 17) std::raise(SIGTERM);
  };
  World world = make_local_world();
  EXPECT_EQ(run_training(with("parts"), world, watch), 128 + SIGTERM);
  EXPECT_EQ(run_training(with("parts")), 0);
  for (const char* file : {"model.safetensors", "rank-0.safetensors"})
    EXPECT_EQ(hash("whole", "00000030", file), hash("parts", "00000030", file)) << file;
  EXPECT_THAT(log("parts"), Not(HasSubstr("the schedule was")));
  Config longer = with("parts");
  longer.train.max_epochs = 1000000, longer.train.max_tokens = 0, longer.train.max_steps = 40;
  EXPECT_EQ(run_training(longer), 0);
  EXPECT_THAT(log("parts"),
              HasSubstr("the schedule was linear, ending at update 30, and is now linear, ending at update 40: the learning rate of update "
                        "31 is 0.0009, not 0"));
  EXPECT_THAT(log("parts"), HasSubstr("complete: train.max-steps 40: 40 updates"));
  longer.train.optimizer.schedule = RateSchedule::inverse_sqrt, longer.train.max_steps = 41;
  EXPECT_EQ(run_training(longer), 0);
  EXPECT_THAT(log("parts"),
              HasSubstr("the schedule was linear, ending at update 40, and is now inverse-sqrt: the learning rate of update 41 is "
                        "0.00148, not 0\n"));  // 0.003 sqrt(10 / 41)
  longer.train.max_steps = 42, longer.train.max_minutes = 7;
  EXPECT_EQ(run_training(longer), 0);
  EXPECT_THAT(log("parts"), Not(HasSubstr("was inverse-sqrt"))) << "which has no end";
  longer.train.optimizer.schedule = RateSchedule::linear, longer.train.max_steps = 50;
  EXPECT_EQ(run_training(longer), 0);
  EXPECT_THAT(log("parts"), HasSubstr("the schedule was inverse-sqrt, and is now linear, ending at update 50 or after 7 minutes: "));
}

}  // namespace
}  // namespace starling
