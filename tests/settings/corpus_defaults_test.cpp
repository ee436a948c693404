// What is chosen by the size of a corpus, and the advice about warm-ups that are too long for a small one.
#include "settings/corpus_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/text_files.h"
#include "tests/run/word_run.h"

namespace starling {
namespace {

using testing::HasSubstr;

TEST(SmallCorpus, AWarmUpOfManyEpochsIsNamed) {
  Config config;
  config.train.optimizer.warmup = 1000;
  const std::string advice = small_corpus_advice(config, 29000, 238);
  EXPECT_THAT(advice, HasSubstr("29000 pairs are few: about 238 updates per epoch, so that the warm-up of 1000 updates is 4.2 epochs"));
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
  EXPECT_THAT(small_corpus_advice(tuned, 29000, 238), HasSubstr("leave train.warmup out, or try --train.warmup 200"));
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

// A run of two epochs of a corpus whose own warm-up is 1,000 updates: an eighth of it, and a rate as for the shortest warm-up.
TEST_F(ChosenByCorpus, AShorterWarmUpHasAHigherRate) {
  EXPECT_EQ(rates(18'000'000, {{"train.max-epochs", "2"}}), std::pair(int64_t{250}, 1.6e-3));
  EXPECT_EQ(rates(18'000'000, {{"train.max-steps", "4800"}}), std::pair(int64_t{600}, 1.3e-3)) << "5e-4 * sqrt(4000 / 600)";
  EXPECT_EQ(rates(18'000'000, {{"train.max-steps", "8000"}}), std::pair(int64_t{1000}, 1e-3));
  const OptimizerOptions minutes = config(18'000'000, {{"train.max-minutes", "12"}, {"train.batch-tokens", "4000"}}).train.optimizer;
  EXPECT_EQ(minutes.warmup, 1000);
  EXPECT_EQ(minutes.learning_rate, 1e-3);
  EXPECT_EQ(minutes.warmup_share, 0.125);
  EXPECT_EQ(config(18'000'000).train.optimizer.warmup_share, 0);
  // Where workers make updates of their own there is no common time.
  const Config apart = config(18'000'000, {{"train.max-minutes", "12"}, {"strategy.name", "model-average"}, {"strategy.batch", "global"}});
  EXPECT_EQ(apart.train.optimizer.schedule, RateSchedule::inverse_sqrt);
  EXPECT_EQ(apart.train.optimizer.warmup_share, 0);
}

TEST_F(ChosenByCorpus, RatesThatAreGivenOrOfAnotherKindOfRunAreLeftAlone) {
  const std::pair<int64_t, double> standard{4000, 5e-4};
  EXPECT_EQ(rates(18'000'000, {{"train.learning-rate", "0.002"}}), std::pair(int64_t{1000}, 2e-3)) << "the warm-up stays the run's";
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

// Nobody knows the size of a text from a pipe, but the run has a length, for which warm-up, batch and schedule are chosen as for files.
TEST_F(ChosenByCorpus, ARunOnAStreamIsChosenByItsLimit) {
  const auto stream = [&](const std::vector<Override>& more) {
    std::vector<Override> all = {{"data.tsv", "-"}, {"vocab.source", "v.spm"}, {"train.output", directory_ + "/run"}};
    all.insert(all.end(), more.begin(), more.end());
    return load_new_config("", all).train;
  };
  const TrainConfig endless = stream({}), standard;
  EXPECT_EQ(endless.optimizer.warmup, standard.optimizer.warmup);
  EXPECT_EQ(endless.optimizer.schedule, RateSchedule::inverse_sqrt);
  const TrainConfig minutes = stream({{"train.max-minutes", "4"}});
  EXPECT_EQ(minutes.optimizer.schedule, RateSchedule::linear);
  EXPECT_EQ(minutes.optimizer.warmup, 400) << "the shortest";
  EXPECT_EQ(minutes.optimizer.learning_rate, 1.6e-3);
  EXPECT_EQ(minutes.optimizer.warmup_share, 0.125);
  EXPECT_EQ(stream({{"train.max-minutes", "100"}}).optimizer.warmup, 1000) << "an eighth of 8,000 updates";
  EXPECT_EQ(stream({{"train.max-minutes", "3000"}}).optimizer.warmup, 4000) << "the default";
  EXPECT_EQ(stream({{"train.max-steps", "1600"}}).optimizer.warmup, 200);
  EXPECT_EQ(stream({{"train.max-steps", "1600"}}).batch_tokens, standard.batch_tokens);
  EXPECT_EQ(stream({{"train.max-tokens", "10000000"}}).batch_tokens, 500) << "as for a hundred epochs of 100,000 tokens";
  EXPECT_EQ(stream({{"train.max-tokens", "10000000"}}).optimizer.warmup, 2500);
  EXPECT_EQ(stream({{"train.max-steps", "1600"}, {"train.warmup", "7"}}).optimizer.warmup, 7) << "what is given stays";
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
  EXPECT_EQ(small.chosen.size() + 1, keys_by_corpus().size()) << "all are told; train.warmup-share is for runs in minutes";
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

// Of a model that 400 updates of warm-up and so many in all have trained with a rate of 1e-3: as far as its schedule had fallen by the root
// of the updates, but a tenth to a fifth of it, as docs/guides/fine-tuning.md says.
TEST_F(ChosenByCorpus, FineTuningHasARateByWhatTheModelWasTrainedWith) {
  Config c;
  c.train.initial_model = "model", c.data.train = {{file("a", 1), file("b", 135'000), "", 1}};  // 30,000 pieces
  const auto value = [](const std::vector<Override>& chosen, const std::string& key) {
    for (const auto& [name, text] : chosen)
      if (name == key) return text;
    return std::string("default");
  };
  const auto rate = [&](int64_t updates) {
    return value(choose_for_fine_tuning(c, keys_by_corpus(), EarlierTraining{1e-3, 400, updates, 4000}), "train.learning-rate");
  };
  EXPECT_EQ(rate(2000), "2.0e-04");
  EXPECT_EQ(rate(10'000), "2.0e-04");
  EXPECT_EQ(rate(16'000), "1.6e-04");
  EXPECT_EQ(rate(40'000), "1.0e-04");
  EXPECT_EQ(rate(1'000'000), "1.0e-04");
  const auto chosen = choose_for_fine_tuning(c, keys_by_corpus(), std::nullopt);
  EXPECT_EQ(value(chosen, "train.learning-rate"), "1.0e-04") << "nobody knows how it was trained";
  EXPECT_EQ(value(chosen, "model.dropout"), "default") << "the model's";
  EXPECT_EQ(value(choose_for_fine_tuning(c, keys_by_corpus(), EarlierTraining{1e-3, 400, 2000, 300}), "train.batch-tokens"), "300")
      << "no more than it was trained with";
}

TEST_F(ChosenByCorpus, FineTuningHasALengthByTheNewText) {
  const auto tuned = [&](uintmax_t bytes, const std::vector<Override>& more = {}) {
    std::vector<Override> all{{"train.initial-model", STARLING_SOURCE_DIR "/tests/fixtures/models/pre/model"}};
    all.insert(all.end(), more.begin(), more.end());
    return config(bytes, all).train;
  };
  const TrainConfig few = tuned(135'000);  // 30,000 pieces, some 2,000 pairs
  EXPECT_EQ(few.batch_tokens, 500);
  EXPECT_EQ(few.max_tokens, 300'000) << "ten epochs";
  EXPECT_EQ(few.optimizer.warmup, 75) << "an eighth of 600 updates";
  EXPECT_EQ(few.optimizer.schedule, RateSchedule::linear);
  const TrainConfig fewer = tuned(13'500);  // 3,000 pieces
  EXPECT_EQ(fewer.batch_tokens, 150) << "twenty updates an epoch";
  EXPECT_EQ(fewer.max_tokens, 90'000) << "thirty epochs";
  EXPECT_EQ(fewer.optimizer.warmup, 75);
  EXPECT_EQ(tuned(13'500, {{"train.max-epochs", "10"}, {"train.max-tokens", "0"}}).optimizer.warmup, 50) << "the moments begin at zero";
  const TrainConfig domain = tuned(4'500'000);  // 1 million
  EXPECT_EQ(domain.batch_tokens, 2000);
  EXPECT_EQ(domain.max_tokens, 5'000'000);
  EXPECT_EQ(domain.optimizer.warmup, 312);
  EXPECT_EQ(tuned(450'000'000).optimizer.warmup, 500) << "at most";
  // Each key by itself, and an end that is given.
  EXPECT_EQ(tuned(135'000, {{"train.learning-rate", "3e-5"}}).optimizer.warmup, 75);
  EXPECT_EQ(tuned(135'000, {{"train.learning-rate", "3e-5"}}).optimizer.learning_rate, 3e-5);
  EXPECT_EQ(tuned(135'000, {{"train.warmup", "20"}}).optimizer.learning_rate, 1e-4);
  EXPECT_EQ(tuned(135'000, {{"train.max-steps", "4000"}}).optimizer.warmup, 500);
  EXPECT_EQ(tuned(135'000, {{"train.max-steps", "4000"}}).max_tokens, 0);
  EXPECT_EQ(tuned(135'000, {{"train.max-minutes", "5"}}).optimizer.warmup_share, 0.125);
  EXPECT_EQ(tuned(135'000, {{"train.objective", "mixed"}}).optimizer.learning_rate, 5e-4) << "docs/guides/refinement.md";
}

using RatesOfARun = WordRunTest;

// Whether it is named by its run, its best model or a checkpoint, which may be elsewhere; a copy of a model has no past.
TEST_F(RatesOfARun, FineTuningKnowsTheModelsRun) {
  EXPECT_EQ(run_training(config("run", {{"train.learning-rate", "0.002"}, {"train.warmup", "1"}})), 0);
  const auto tuned = [&](const std::string& model, const std::string& output = "tuned") {
    return load_run_config("", {{"data.source", path("a")},
                                {"data.target", path("b")},
                                {"train.output", path(output)},
                                {"train.threads", "1"},
                                {"train.precision", "f32"},
                                {"train.initial-model", path(model)}});
  };
  std::filesystem::copy(path("run/checkpoints/step-00000004"), path("step"), std::filesystem::copy_options::recursive);
  std::filesystem::copy(path("run/best"), path("model"), std::filesystem::copy_options::recursive);
  for (const char* model : {"run", "run/best", "run/checkpoints/step-00000004", "step"}) {
    const Config c = tuned(model);
    EXPECT_EQ(c.train.optimizer.learning_rate, 4e-4) << model << ": a fifth";
    EXPECT_EQ(c.train.batch_tokens, 60) << model;
    EXPECT_GT(c.train.max_tokens, 0) << model;
    EXPECT_THAT(c.chosen_for, HasSubstr("updates at a peak rate of 0.002")) << model;
  }
  EXPECT_EQ(tuned("model").train.optimizer.learning_rate, 1e-4);
  EXPECT_THAT(tuned("model").chosen_for, HasSubstr("whose training is not known"));
  // The run goes on with what it began with, when the model is gone too; it tells what was chosen, and trains.
  const Config first = tuned("run");
  EXPECT_EQ(run_training(first), 0);
  EXPECT_THAT(
      read_text_file(path("tuned/train.log")),
      testing::AllOf(HasSubstr("chosen for fine-tuning on about "), HasSubstr("train.learning-rate 4.0e-04"),
                     HasSubstr("give a key to choose it yourself (docs/guides/fine-tuning.md)"), HasSubstr("complete: train.max-tokens ")));
  std::filesystem::remove_all(path("run"));
  EXPECT_EQ(config_lines(tuned("run")), config_lines(first));
}

// What was chosen for the files at the first start stays, though the record is lost and the files have grown.
TEST_F(RatesOfARun, AreThoseOfItsCheckpointWhereTheRecordIsLost) {
  const auto rates = [&](std::vector<Override> more) {
    more.emplace_back("train.max-steps", "100000");  // long enough for a rate of its own
    const OptimizerOptions o = config("run", more).train.optimizer;
    return std::pair(o.warmup, o.learning_rate);
  };
  const std::pair<int64_t, double> first{1, 1.6e-3}, anew{4000, 5e-4};
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
    state.erase("warmup"), state.erase("learning-rate"), state.erase("settings");
    std::ofstream(checkpoint.path() / "state.json") << state.dump();
  }
  EXPECT_EQ(rates({}), anew);
}

}  // namespace
}  // namespace starling
