// The advice about warm-ups that are too long for a small corpus.
#include "train/small_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text_files.h"
#include "tests/train/word_run.h"

namespace starling {
namespace {

using testing::HasSubstr;

TEST(SmallCorpus, AWarmUpOfManyEpochsIsNamed) {
  Config config;
  config.train.optimizer.warmup = 1000;
  const std::string advice = small_corpus_advice(config, 29000, 238);
  EXPECT_THAT(advice, HasSubstr("29000 pairs are few: about 238 updates an epoch, so that the warm-up of 1000 updates is 4.2 epochs"));
  EXPECT_THAT(
      advice,
      HasSubstr("leave train.warmup and train.learning-rate out, and try --model.preset transformer-small --train.batch-tokens 2000"));
}

TEST(SmallCorpus, WhatIsSmallAlreadyStaysAsItIs) {
  Config config;
  config.model = model_preset("transformer-tiny"), config.train.batch_tokens = 1000, config.train.optimizer.warmup = 4000;
  EXPECT_THAT(small_corpus_advice(config, 29000, 476), testing::EndsWith("leave train.warmup and train.learning-rate out"));
}

TEST(SmallCorpus, WhereNothingIsChosenByItselfValuesAreNamed) {
  Config config;
  config.model = model_preset("transformer-tiny"), config.train.batch_tokens = 1000, config.strategy = strategy_preset("bmuf");
  EXPECT_THAT(small_corpus_advice(config, 29000, 476), testing::EndsWith("set --train.warmup 400 --train.learning-rate 1.6e-3"));
}

TEST(SmallCorpus, WhatIsAdvisedIsNotAdvisedAgain) {
  Config config;
  config.train.optimizer.warmup = 400;
  EXPECT_EQ(small_corpus_advice(config, 29000, 238), "");
}

TEST(SmallCorpus, OtherRunsAreLeftInPeace) {
  Config config;
  EXPECT_NE(small_corpus_advice(config, 29000, 238), "");
  EXPECT_EQ(small_corpus_advice(config, 100000, 238), "") << "not small";
  Config tuned = config;
  tuned.train.initial_model = "model";
  EXPECT_THAT(small_corpus_advice(tuned, 29000, 238), HasSubstr("for fine-tuning try --train.warmup 200 --train.learning-rate 1e-4"));
  Config recurrent = config;
  recurrent.model = model_preset("gnmt-small");
  EXPECT_EQ(small_corpus_advice(recurrent, 29000, 238), "");
  Config counted = config;
  counted.train.warmup_tokens = 1000000;
  EXPECT_EQ(small_corpus_advice(counted, 29000, 238), "");
}

// Files of which only the sizes matter.
class WarmUpByCorpus : public testing::Test {
 protected:
  WarmUpByCorpus() : directory_(testing::TempDir() + "starling_warm_up_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(directory_);
  }
  ~WarmUpByCorpus() override { std::filesystem::remove_all(directory_); }
  std::string file(const std::string& name, uintmax_t bytes) const {
    const std::string path = directory_ + "/" + name;
    std::ofstream{path};
    std::filesystem::resize_file(path, bytes);
    return path;
  }
  // Warm-up and rate of a run of 4,000 tokens an update with that much target text.
  std::pair<int64_t, double> chosen(uintmax_t bytes, std::vector<Override> more = {}, const std::string& name = "b") const {
    std::vector<Override> all = {{"data.source", file("a", 1)}, {"data.target", file(name, bytes)}, {"train.output", directory_ + "/run"}};
    all.insert(all.end(), more.begin(), more.end());
    const OptimizerOptions o = load_run_config("", all).train.optimizer;
    return {o.warmup, o.learning_rate};
  }
  std::string directory_;
};

// The rate after the warm-up is 5e-4 * sqrt(4000 / update) in each row.
TEST_F(WarmUpByCorpus, IsOneEpochAndTheRateWhereTheDefaultScheduleIsThen) {
  EXPECT_EQ(chosen(18'000'000), std::pair(int64_t{1000}, 1e-3)) << "18 MB are 4 million pieces, 1,000 updates";
  EXPECT_EQ(chosen(6'000'000, {}, "b.gz"), std::pair(int64_t{1000}, 1e-3)) << "compressed to a third";
  EXPECT_EQ(chosen(18'000'000, {{"train.batch-tokens", "2000"}}), std::pair(int64_t{2000}, 7.1e-4));
  EXPECT_EQ(chosen(1'800'000), std::pair(int64_t{400}, 1.6e-3)) << "the shortest";
  EXPECT_EQ(chosen(1'800'000'000), std::pair(int64_t{4000}, 5e-4)) << "the defaults";
}

TEST_F(WarmUpByCorpus, WhatIsGivenOrAnotherKindOfRunIsLeftAlone) {
  const std::pair<int64_t, double> standard{4000, 5e-4};
  EXPECT_EQ(chosen(1'800'000, {{"train.learning-rate", "0.002"}}), std::pair(int64_t{4000}, 2e-3));
  EXPECT_EQ(chosen(1'800'000, {{"train.warmup", "300"}}), std::pair(int64_t{300}, 5e-4));
  EXPECT_EQ(chosen(1'800'000, {{"train.warmup-tokens", "100000"}}), standard);
  EXPECT_EQ(chosen(1'800'000, {{"model.preset", "gnmt-small"}}), standard);
  EXPECT_EQ(chosen(1'800'000, {{"train.optimizer", "sgd"}}), standard);
  EXPECT_EQ(chosen(1'800'000, {{"train.schedule", "constant"}}), standard);
  EXPECT_EQ(chosen(1'800'000, {{"train.schedule", "linear"}}), std::pair(int64_t{400}, 1.6e-3)) << "one with an end is no other kind";
  EXPECT_EQ(chosen(1'800'000, {{"strategy.batch", "per-worker"}}), standard) << "an epoch has fewer updates than can be told here";
  EXPECT_EQ(chosen(1'800'000, {{"strategy.learning-rate-scaling", "linear"}}), standard);
  EXPECT_EQ(chosen(1'800'000, {{"data.target", directory_ + "/absent"}}), standard);
}

using RatesOfARun = WordRunTest;

// What was chosen for the files at the first start stays, though the record is lost and the files have grown.
TEST_F(RatesOfARun, AreThoseOfItsCheckpointWhereTheRecordIsLost) {
  const auto rates = [&](const std::vector<Override>& more) {
    const OptimizerOptions o = config("run", more).train.optimizer;
    return std::pair(o.warmup, o.learning_rate);
  };
  const std::pair<int64_t, double> first{400, 1.6e-3}, anew{4000, 5e-4};
  EXPECT_EQ(rates({}), first);
  EXPECT_EQ(run_training(config("run")), 0);
  std::filesystem::resize_file(path("b"), 2'000'000);
  EXPECT_EQ(rates({}), first);
  std::filesystem::remove(path("run/config.yml"));
  EXPECT_EQ(rates({}), first);
  EXPECT_EQ(rates({{"train.learning-rate", "0.002"}}), std::pair(int64_t{400}, 2e-3));
  EXPECT_EQ(rates({{"train.output", path("another")}}), anew);
  // A checkpoint of a version that did not note them.
  for (const auto& checkpoint : std::filesystem::directory_iterator(path("run/checkpoints"))) {
    nlohmann::json state = nlohmann::json::parse(read_text_file(checkpoint.path() / "state.json"));
    state.erase("warmup"), state.erase("learning-rate");
    std::ofstream(checkpoint.path() / "state.json") << state.dump();
  }
  EXPECT_EQ(rates({}), anew);
}

}  // namespace
}  // namespace starling
