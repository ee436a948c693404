// What is chosen by the size of a corpus, and the advice about warm-ups that are too long for a small one.
#include "train/corpus_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

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

// Files without text, so that only their sizes matter, where nothing else is said.
class ChosenByCorpus : public testing::Test {
 protected:
  ChosenByCorpus() : directory_(testing::TempDir() + "starling_warm_up_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(directory_);
  }
  ~ChosenByCorpus() override { std::filesystem::remove_all(directory_); }
  std::string file(const std::string& name, uintmax_t bytes) const {
    const std::string path = directory_ + "/" + name;
    std::ofstream{path};
    std::filesystem::resize_file(path, bytes);
    return path;
  }
  // Of a run with that much target text.
  Config config(uintmax_t bytes, const std::vector<Override>& more = {}, const std::string& name = "b") const {
    std::vector<Override> all = {{"data.source", file("a", 1)}, {"data.target", file(name, bytes)}, {"train.output", directory_ + "/run"}};
    all.insert(all.end(), more.begin(), more.end());
    return load_run_config("", all);
  }
  // Warm-up and rate with 4,000 tokens an update.
  std::pair<int64_t, double> rates(uintmax_t bytes, const std::vector<Override>& more = {}, const std::string& name = "b") const {
    std::vector<Override> all = {{"train.batch-tokens", "4000"}};
    all.insert(all.end(), more.begin(), more.end());
    const OptimizerOptions o = config(bytes, all, name).train.optimizer;
    return {o.warmup, o.learning_rate};
  }
  std::string directory_;
};

// The rate after the warm-up is 5e-4 * sqrt(4000 / update) in each row.
TEST_F(ChosenByCorpus, WarmUpIsOneEpochAndTheRateWhereTheDefaultScheduleIsThen) {
  EXPECT_EQ(rates(18'000'000), std::pair(int64_t{1000}, 1e-3)) << "18 MB are 4 million pieces, 1,000 updates";
  EXPECT_EQ(rates(6'000'000, {}, "b.gz"), std::pair(int64_t{1000}, 1e-3)) << "compressed to a third";
  EXPECT_EQ(rates(18'000'000, {{"train.batch-tokens", "2000"}}), std::pair(int64_t{2000}, 7.1e-4));
  EXPECT_EQ(rates(1'800'000, {{"train.max-steps", "9000"}}), std::pair(int64_t{400}, 1.6e-3)) << "the shortest";
  EXPECT_EQ(rates(1'800'000, {{"train.max-steps", "1600"}}), std::pair(int64_t{200}, 1.6e-3)) << "an eighth of the run";
  EXPECT_EQ(rates(1'800'000, {{"train.max-tokens", "8000000"}}), std::pair(int64_t{250}, 1.6e-3)) << "likewise, 2,000 updates";
  EXPECT_EQ(rates(1'800'000'000), std::pair(int64_t{4000}, 5e-4)) << "the defaults";
}

TEST_F(ChosenByCorpus, RatesThatAreGivenOrOfAnotherKindOfRunAreLeftAlone) {
  const std::pair<int64_t, double> standard{4000, 5e-4};
  EXPECT_EQ(rates(1'800'000, {{"train.learning-rate", "0.002"}}), std::pair(int64_t{4000}, 2e-3));
  EXPECT_EQ(rates(1'800'000, {{"train.warmup", "300"}}), std::pair(int64_t{300}, 5e-4));
  EXPECT_EQ(rates(1'800'000, {{"train.warmup-tokens", "100000"}}), standard);
  EXPECT_EQ(rates(1'800'000, {{"model.preset", "gnmt-small"}}), standard);
  EXPECT_EQ(rates(1'800'000, {{"train.optimizer", "sgd"}}), standard);
  EXPECT_EQ(rates(1'800'000, {{"train.schedule", "constant"}}), standard);
  EXPECT_EQ(rates(1'800'000, {{"train.schedule", "linear"}, {"train.max-steps", "9000"}}), std::pair(int64_t{400}, 1.6e-3))
      << "one with an end is no other kind";
  EXPECT_EQ(rates(1'800'000, {{"strategy.batch", "per-worker"}}), standard) << "an epoch has fewer updates than can be told here";
  EXPECT_EQ(rates(1'800'000, {{"strategy.learning-rate-scaling", "linear"}}), standard);
  EXPECT_EQ(rates(1'800'000, {{"data.target", directory_ + "/absent"}}), standard);
}

// Pieces are 4.5 bytes.
TEST_F(ChosenByCorpus, AModelAndARunOfItsSize) {
  const Config tiny = config(450'000), small = config(2'250'000), base = config(45'000'000), large = config(2'250'000'000);
  EXPECT_EQ(tiny.model.preset, "transformer-tiny");
  EXPECT_EQ(tiny.model.width, model_preset("transformer-tiny").width);
  EXPECT_EQ(tiny.vocab.training.size, 4000);
  EXPECT_EQ(tiny.train.max_tokens, 10'000'000) << "100 epochs of 100,000";
  EXPECT_EQ(small.model.preset, "transformer-small");
  EXPECT_EQ(small.model.dropout, 0.3);
  EXPECT_EQ(small.vocab.training.size, 8000);
  EXPECT_EQ(small.train.batch_tokens, 2000);
  EXPECT_EQ(small.train.max_tokens, 15'000'000) << "30 epochs of 500,000";
  EXPECT_EQ(small.train.optimizer.schedule, RateSchedule::linear);
  EXPECT_EQ(base.model.preset, "transformer-base");
  EXPECT_EQ(base.model.dropout, 0.2);
  EXPECT_EQ(large.model.dropout, 0.1);
  EXPECT_EQ(large.train.batch_tokens, 25000);
  EXPECT_EQ(small.chosen.size(), keys_by_corpus().size()) << "all are told";
}

// A piece is 4.5 letters of any alphabet, 1.6 Chinese characters or Korean syllables, 3 kana, and a line's end counts as a letter.
TEST_F(ChosenByCorpus, PiecesAreCountedInCharactersNotInBytes) {
  const auto estimate = [&](const std::string& character, int a_line, int lines) {
    std::string line;
    for (int i = 0; i < a_line; ++i) line += character;
    std::ofstream out(directory_ + "/text");
    for (int i = 0; i < lines; ++i) out << line << "\n";
    out.close();
    Config c;
    c.data.train = {{.source = directory_ + "/text", .target = directory_ + "/text"}};
    return estimated_epoch(c);
  };
  EXPECT_NEAR(estimate("e", 44, 1000), 10'000, 1);
  EXPECT_NEAR(estimate("ж", 44, 1000), 10'000, 1);
  EXPECT_NEAR(estimate("ก", 44, 1000), 10'000, 1);
  EXPECT_NEAR(estimate("字", 16, 1000), 10'222, 1);
  EXPECT_NEAR(estimate("글", 16, 1000), 10'222, 1);
  EXPECT_NEAR(estimate("か", 30, 1000), 10'222, 1);
  EXPECT_NEAR(estimate("ж", 44, 100'000), 1'000'000, 1'000) << "9 MB, of which the beginning is read";
}

// Of archives too the beginning tells what the whole has.
TEST_F(ChosenByCorpus, PiecesOfArchivesAreEstimatedFromTheirBeginning) {
  std::mt19937 random(1);
  const std::string path = directory_ + "/text.gz";
  const gzFile out = gzopen(path.c_str(), "wb");
  for (int i = 0; i < 100'000; ++i) {
    std::string line;
    for (int c = 0; c < 44; ++c) line += static_cast<char>('a' + random() % 26);
    gzputs(out, (line + "\n").c_str());
  }
  gzclose(out);
  Config c;
  c.data.train = {{.source = path, .target = path}};
  EXPECT_NEAR(estimated_epoch(c), 1'000'000, 20'000);
}

TEST_F(ChosenByCorpus, WhatIsGivenStays) {
  const Config c = config(2'250'000, {{"model.preset", "transformer-base"}, {"vocab.size", "5000"}, {"train.max-steps", "700"}});
  EXPECT_EQ(c.model.preset, "transformer-base");
  EXPECT_EQ(c.model.dropout, 0.3) << "the corpus is small for it";
  EXPECT_EQ(c.vocab.training.size, 5000);
  EXPECT_EQ(c.train.max_steps, 700);
  EXPECT_EQ(c.train.max_tokens, 0) << "an end is given";
  EXPECT_EQ(c.train.optimizer.schedule, RateSchedule::linear);
  const Config wide = config(2'250'000, {{"model.width", "320"}});
  EXPECT_EQ(wide.model.preset, Config().model.preset) << "dimensions without a preset are for the default one";
  EXPECT_EQ(config(2'250'000, {{"train.schedule", "inverse-sqrt"}}).train.optimizer.schedule, RateSchedule::inverse_sqrt);
  EXPECT_TRUE(config(2'250'000, {{"model.preset", "gnmt-small"}}).chosen.empty());
  EXPECT_TRUE(config(2'250'000, {{"data.target", directory_ + "/absent"}}).chosen.empty());
  EXPECT_EQ(config(2'250'000, {{"strategy.name", "downpour"}}).train.optimizer.schedule, RateSchedule::inverse_sqrt);
}

using RatesOfARun = WordRunTest;

// What was chosen for the files at the first start stays, though the record is lost and the files have grown.
TEST_F(RatesOfARun, AreThoseOfItsCheckpointWhereTheRecordIsLost) {
  const auto rates = [&](const std::vector<Override>& more) {
    const OptimizerOptions o = config("run", more).train.optimizer;
    return std::pair(o.warmup, o.learning_rate);
  };
  const std::pair<int64_t, double> first{1, 1.6e-3}, anew{1, 5e-4};
  EXPECT_EQ(rates({}), first);
  EXPECT_EQ(run_training(config("run")), 0);
  std::filesystem::resize_file(path("b"), 2'000'000);
  EXPECT_EQ(rates({}), first);
  std::filesystem::remove(path("run/config.yml"));
  EXPECT_EQ(rates({}), first);
  EXPECT_EQ(rates({{"train.learning-rate", "0.002"}}), std::pair(int64_t{1}, 2e-3));
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
