// A run into a language without spaces: its BLEU rises, the best model is a trained one, and a tokenizer that cannot see words neither ends
// the run nor keeps the untrained model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "base/text_files.h"
#include "run/trainer.h"
#include "storage/checkpoint.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

// Each English word has a Chinese one; Chinese has no spaces.
void write_corpus(const std::string& source, const std::string& target, int lines, uint64_t seed) {
  const std::vector<std::string> english{"red", "dog", "cat", "house", "tree", "sees"},
      chinese{"红色", "小狗", "猫咪", "房子", "树木", "看见"};
  Random random(seed, 1);
  std::ofstream s(source), t(target);
  for (int i = 0; i < lines; ++i, s << "\n", t << "。\n")
    for (int n = 3 + static_cast<int>(random.below(3)); n > 0; --n) {
      const size_t w = random.below(english.size());
      s << english[w] << (n > 1 ? " " : ""), t << chinese[w];
    }
}

class UnspacedTest : public testing::Test {
 protected:
  UnspacedTest()
      : directory_(fs::temp_directory_path() / ("starling-unspaced-" + std::to_string(::getpid()) + "-" +
                                                testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(directory_);
    write_corpus(path("train.en"), path("train.zh"), 400, 1);
    write_corpus(path("valid.en"), path("valid.zh"), 10, 2);
  }
  ~UnspacedTest() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  Config config() const {
    Config c = parse_config(
        "model: {preset: transformer-tiny, width: 32, feed-forward: 64}\n"
        "valid: {metrics: [bleu, cross-entropy], beam: 1, early-stopping: 2}\n",
        "test", {{"valid.source", path("valid.en")}, {"valid.target", path("valid.zh")}});
    c.data.train = {{path("train.en"), path("train.zh"), "", 1}};
    c.vocab.training.size = 70;
    c.train.output = path("run"), c.train.threads = 1, c.train.batch_tokens = 300;
    c.train.optimizer.learning_rate = 5e-3, c.train.optimizer.warmup = 10, c.log.every = 1000;
    return c;
  }

  std::string log() const { return read_text_file(path("run/train.log")); }
  std::vector<nlohmann::json> validations() const {
    std::vector<nlohmann::json> all;
    std::ifstream in(path("run/events.jsonl"));
    for (std::string line; std::getline(in, line);)
      if (const auto event = nlohmann::json::parse(line); event["type"] == "validation") all.push_back(event);
    return all;
  }
  int64_t best_step() const { return best_checkpoint(*real_file_system(), path("run"))->step; }

  fs::path directory_;
};

TEST_F(UnspacedTest, BleuRisesAndTheBestModelIsATrainedOne) {
  Config c = config();
  c.train.max_steps = 120, c.valid.every = c.checkpoint.every = 20;
  EXPECT_EQ(run_training(c), 0);
  EXPECT_THAT(log(), HasSubstr("tokenizer of BLEU and GLEU: zh, since the references are Chinese (100 % of their letters are Han"));
  const auto all = validations();
  ASSERT_FALSE(all.empty());
  double first = all.front()["scores"]["bleu"], best = 0;
  int64_t best_at = 0;
  for (const auto& v : all) {
    EXPECT_EQ(v["tokenizer"], "zh");
    if (const double bleu = v["scores"]["bleu"]; bleu > best) best = bleu, best_at = v["step"];
  }
  EXPECT_GT(best, first);
  EXPECT_GT(best, 5);
  EXPECT_EQ(best_step(), best_at);
  EXPECT_GT(best_step(), 20);
}

// Translations that may have three pieces at the most are shorter than the references; the end of the run, also of a resumed one, says so.
TEST_F(UnspacedTest, ShortTranslationsAreTold) {
  Config c = config();
  c.train.max_steps = 40, c.valid.every = c.checkpoint.every = 20;
  c.valid.search.max_length_factor = 0, c.valid.search.max_length_offset = 3;
  EXPECT_EQ(run_training(c), 0);
  const double ratio = validations().back()["length_ratio"];
  EXPECT_GT(ratio, 0.05);
  EXPECT_LT(ratio, 0.9);
  const std::string told = "validation set are short, ", where = "tune-search --model " + path("run") + " --source " + path("valid.en");
  EXPECT_THAT(log(), AllOf(HasSubstr(told), HasSubstr(where)));
  const size_t end = log().size();
  c.train.max_steps = 50;
  EXPECT_EQ(run_training(c), 0);
  EXPECT_THAT(log().substr(end), HasSubstr(told));
}

// BLEU of translations of a piece or two is 0, and their search is not to blame.
TEST_F(UnspacedTest, ShortTranslationsOfAModelThatHasLearnedNothingAreTold) {
  Config c = config();
  c.train.max_steps = 2, c.valid.every = c.checkpoint.every = 2;
  c.valid.search.max_length_factor = 0, c.valid.search.max_length_offset = 1;
  EXPECT_EQ(run_training(c), 0);
  EXPECT_EQ(validations().back()["scores"]["bleu"], 0.0);
  EXPECT_LT(validations().back()["length_ratio"], 0.9);
  EXPECT_THAT(log(), AllOf(HasSubstr("validation set are short, "), HasSubstr("its BLEU is 0: it has learned too little")));
  EXPECT_THAT(log(), Not(HasSubstr("tune-search")));
}

TEST_F(UnspacedTest, AMissingModelOfTheTokenizerIsRefusedBeforeAnythingIsMade) {
  Config c = config();
  c.valid.tokenize = "spm:" + path("no.model");
  testing::internal::CaptureStdout();
  EXPECT_THROW(run_training(c), IoError);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), Not(HasSubstr("vocabulary")));
  EXPECT_FALSE(fs::exists(path("run/data")));
  c.valid.metrics = {"cross-entropy"}, c.train.max_steps = 1;  // which needs no tokenizer
  EXPECT_EQ(run_training(c), 0);
  EXPECT_FALSE(validations().back().contains("length_ratio"));
  EXPECT_THAT(log(), Not(HasSubstr("are short")));
}

// A run that began without MeCab, here one whose text was Thai at first, goes on with characters for Japanese, whatever is installed now.
TEST_F(UnspacedTest, WhatAutoChoseIsKept) {
  Config c = config();
  c.train.max_steps = 2, c.valid.every = c.checkpoint.every = 2;
  std::ofstream(path("valid.zh")) << "หมาเห็นแมว\nแมวเห็นหมา\n", std::ofstream(path("valid.en")) << "dog sees cat\ncat sees dog\n";
  EXPECT_EQ(run_training(c), 0);
  std::ofstream(path("valid.zh")) << "犬は猫を見る。\n猫は犬を見る。\n";
  c.train.max_steps = 4;
  EXPECT_EQ(run_training(c), 0);
  EXPECT_EQ(validations().back()["tokenizer"], "char");
  EXPECT_THAT(log(), HasSubstr("tokenizer of BLEU and GLEU: char, since the references are Japanese (50 % of their letters are kana)\n"));
}

TEST_F(UnspacedTest, ATokenizerThatSeesNoWordsIsToldAndDoesNoHarm) {
  Config c = config();
  c.valid.tokenize = "13a", c.valid.every = c.checkpoint.every = 5;
  c.train.max_steps = 10;
  EXPECT_EQ(run_training(c), 0);
  EXPECT_THAT(log(),
              HasSubstr("warning: the references are Chinese (100 % of their letters are Han characters), but the tokenizer 13a relies "
                        "on spaces between words; choose auto or zh"));
  EXPECT_THAT(log(), Not(HasSubstr("bleu was exactly 0")));
  EXPECT_EQ(validations().back()["length_ratio"], 1.0);  // each sentence is one word
  EXPECT_THAT(log(), Not(HasSubstr("are short")));
  c.train.max_steps = 30;  // continued: the third equal score warns, and nothing stops although BLEU never moves
  EXPECT_EQ(run_training(c), 0);
  EXPECT_EQ(latest_checkpoint(*real_file_system(), path("run"))->step, 30);
  for (const auto& v : validations()) EXPECT_EQ(v["scores"]["bleu"], 0.0);
  const std::string warning = "warning: bleu was exactly 0 in 3 validations in a row";
  EXPECT_THAT(log(), HasSubstr(warning));
  EXPECT_EQ(log().find(warning, log().find(warning) + 1), std::string::npos);
  double lowest = 1e9;
  int64_t lowest_at = 0;
  for (const auto& v : validations())
    if (const double entropy = v["scores"]["cross-entropy"]; entropy < lowest) lowest = entropy, lowest_at = v["step"];
  EXPECT_EQ(best_step(), lowest_at);
  EXPECT_GT(best_step(), 5);

  c.valid.tokenize = "auto", c.train.max_steps = 35;  // scores of another tokenizer are another metric
  EXPECT_EQ(run_training(c), 0);
  EXPECT_THAT(log(), HasSubstr("the tokenizer of bleu has changed from 13a to zh; earlier scores are discarded"));
  EXPECT_EQ(best_step(), 35);
}

}  // namespace
}  // namespace starling
