// `starling tune-search` on a tiny model: the sweep agrees with translating and evaluating by hand, its result is what the model directory
// then decodes with, and the directory stays whole, loadable and resumable.
#include "decode/tune_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/lock.h"
#include "storage/checkpoint.h"
#include "tests/program/called.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class TuneSearchTest : public CalledTest {
 protected:
  void SetUp() override {
    const std::string source = seeing(200, true), target = seeing(200, false);
    write("a", source), write("b", target);
    write("dev.a", source.substr(0, 10 * 11)), write("dev.b", target.substr(0, 10 * 15));
    ASSERT_EQ(train(20).status, 0);
  }

  std::string best() const { return path("run/checkpoints/step-00000020"); }
  std::string content(const std::string& file) const { return files_->read_file(file); }
  ShellOutcome train(int steps) const {
    return call(
        "train --data.source a --data.target b --train.output run --vocab.size 60 --model.preset transformer-tiny --model.width 32 "
        "--model.feed-forward 64 --model.heads 2 --checkpoint.every 10 --train.batch-tokens 400 --train.threads 1 --train.precision f32 "
        "--train.warmup 5 --train.learning-rate 3e-3 --train.schedule inverse-sqrt --model.dropout 0.1 --train.max-steps " +
        std::to_string(steps));
  }
  ShellOutcome tune(const std::string& arguments) const {
    return call("tune-search --source dev.a --target dev.b --threads 1 --precision f32 --metric chrf " + arguments);
  }

  std::unique_ptr<FileSystem> files_ = real_file_system();
};

TEST_F(TuneSearchTest, TheSweepIsWhatTranslateAndEvaluateGive) {
  const ShellOutcome o =
      tune("--model run --length-penalties 1,0,1 --coverage-penalties 0,0.3,2 --beam 3 --prune-threshold 4 --tokenize char");
  ASSERT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("[6/7] alpha 1 beta 2: BLEU "));
  EXPECT_THAT(o.text, HasSubstr("[7/7] alpha 0.6 beta 0: BLEU "));  // the model's own
  EXPECT_THAT(o.text, HasSubstr("chrF              beta 0    beta 0.3      beta 2\nalpha 0 "));
  const auto report = nlohmann::json::parse(content(best() + "/search.json"));
  ASSERT_EQ(report["trials"].size(), 7u);
  EXPECT_EQ(report["beam"], 3);
  EXPECT_EQ(report["tokenizer"], "char");
  EXPECT_EQ(report["prune_threshold"], 4);
  EXPECT_EQ(report["sentences"], 10);
  double highest = 0;
  for (const auto& trial : report["trials"]) {
    const std::string alpha = trial["length_penalty"].dump(), beta = trial["coverage_penalty"].dump();
    const ShellOutcome t = call("translate --model run --input dev.a --output out --quiet --threads 1 --precision f32 --beam 3" +
                                (" --prune-threshold 4 --length-penalty " + alpha) + " --coverage-penalty " + beta);
    ASSERT_EQ(t.status, 0) << t.text;
    const ShellOutcome e = call("evaluate --hypotheses out --references dev.b --metrics bleu,chrf --tokenize char --format json");
    const auto scores = nlohmann::json::parse(e.text);
    EXPECT_EQ(trial["bleu"], scores[0]["score"]) << alpha << " " << beta;
    EXPECT_EQ(trial["chrf"], scores[1]["score"]) << alpha << " " << beta;
    EXPECT_THAT(std::string(scores[0]["verbose_score"]), HasSubstr(" ratio = " + fmt::format("{:.3f}", double(trial["length_ratio"]))));
    EXPECT_GT(trial["decoder_rows"], 10);
    highest = std::max(highest, double(trial["chrf"]));
  }
  EXPECT_GT(highest, 0);
  EXPECT_EQ(report["best"]["chrf"], highest);
}

TEST_F(TuneSearchTest, TheBestBecomesTheModelsAndTheCheckpointStaysWhole) {
  const std::string before = content(best() + "/decode.yml"), weights = content(best() + "/model.safetensors");
  ShellOutcome o = tune("--model run --length-penalties 0.3 --coverage-penalties 0.7 --beam 5 --dry-run");
  ASSERT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("best: alpha 0.3 beta 0.7: "));
  EXPECT_EQ(content(best() + "/decode.yml"), before);
  EXPECT_FALSE(fs::exists(best() + "/search.json"));

  for (const std::string beta : {"0.7", "0.7"}) {  // twice: the second time there is a search.json
    o = tune("--model run --length-penalties 0.3 --coverage-penalties " + beta + " --beam 5");
    ASSERT_EQ(o.status, 0) << o.text;
    const std::string now = content(best() + "/decode.yml");
    EXPECT_THAT(now, HasSubstr("length-penalty: 0.3 "));
    EXPECT_THAT(now, HasSubstr("coverage-penalty: " + beta + " "));
    EXPECT_THAT(now, HasSubstr("beam: 5 "));
    EXPECT_EQ(content(best() + "/model.safetensors"), weights);
    const Loaded loaded = verify_directory(*files_, best());
    EXPECT_EQ(loaded.step, 20);
    EXPECT_TRUE(loaded.has("search.json"));
    for (const auto& entry : fs::directory_iterator(path("run/checkpoints"))) EXPECT_NE(entry.path().filename().string()[0], '.');
  }
  EXPECT_EQ(call("translate --model run --input dev.a --output with-model --quiet --threads 1 --precision f32").status, 0);
  EXPECT_EQ(call("translate --model run --input dev.a --output with-options --quiet --threads 1 --precision f32 --beam 5 "
                 "--length-penalty 0.3 --coverage-penalty 0.7")
                .status,
            0);
  EXPECT_EQ(content(path("with-model")), content(path("with-options")));

  o = train(30);
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("continuing after update 20 from"));
  EXPECT_EQ(latest_checkpoint(*files_, path("run"))->step, 30);
}

// Two languages that have letters in common but no words, and a model that has learnt the one direction.
TEST_F(TuneSearchTest, DoubtsSidesThatAreSwappedOrOneFile) {
  ASSERT_EQ(train(200).status, 0);
  const std::string grid = "tune-search --model run --dry-run --threads 1 --precision f32 --length-penalties 0 --coverage-penalties 0";
  EXPECT_THAT(call(grid + " --source dev.a --target dev.b").text, Not(HasSubstr("warning")));
  ShellOutcome o = call(grid + " --source dev.b --target dev.a");
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("starling: warning: --source dev.b and --target dev.a seem to be swapped: the model's cross-entropy is "));
  o = call(grid + " --source dev.a --target ./dev.a");
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("starling: warning: dev.a is both --source and --target, so the scores tell how well the model copies\n"));
}

TEST_F(TuneSearchTest, RefusesWhatItCouldNotWriteBeforeItSearches) {
  const std::string grid = " --length-penalties 0 --coverage-penalties 0";
  {
    const auto lock = FileLock::try_acquire(path("run/lock"));
    ASSERT_TRUE(lock);
    const ShellOutcome o = tune("--model run" + grid);
    EXPECT_EQ(o.status, 2);
    EXPECT_THAT(o.text, HasSubstr("another process (training or tune-search) uses this directory"));
    EXPECT_THAT(o.text, Not(HasSubstr("[1/")));
    EXPECT_EQ(tune("--model run --dry-run" + grid).status, 0);
  }
  write("run/checkpoints/step-00000020/my-notes", "x");
  ShellOutcome o = tune("--model run" + grid);
  EXPECT_EQ(o.status, 2);
  EXPECT_THAT(o.text, HasSubstr("my-notes"));
  EXPECT_THAT(o.text, Not(HasSubstr("[1/")));
  EXPECT_EQ(content(best() + "/my-notes"), "x");

  fs::copy(best(), path("copy"));
  fs::remove(path("copy/manifest.json"));
  o = tune("--model copy" + grid);
  EXPECT_EQ(o.status, 2);
  EXPECT_THAT(o.text, HasSubstr("has no manifest.json"));

  o = call("tune-search --model run --source dev.a --target b --dry-run");
  EXPECT_EQ(o.status, 3);
  o = tune("--model run --length-penalties 0,x");
  EXPECT_EQ(o.status, 2);
  EXPECT_THAT(o.text, HasSubstr("--length-penalties"));
  for (const std::string option :
       {"--length-penalties nan", "--coverage-penalties 0,nan", "--prune-threshold nan", "--max-length-factor inf"}) {
    o = tune("--model run --dry-run " + option);
    EXPECT_EQ(o.status, 2) << option;
    EXPECT_THAT(o.text, HasSubstr("not in range"));
  }
}

TEST_F(TuneSearchTest, WhatTheModelHasIsKeptWhenItIsBetter) {
  ShellOutcome o = tune("--model run --length-penalties 0.6 --coverage-penalties 0,0");
  ASSERT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("[1/1]"));
  EXPECT_THAT(o.text, HasSubstr("kept: alpha 0.6 beta 0: "));
  EXPECT_THAT(content(best() + "/decode.yml"), HasSubstr("length-penalty: 0.6 "));
  // With one hypothesis nothing is ranked: all settings give the same.
  o = tune("--model run --length-penalties 0,0.6,1 --coverage-penalties 0,0.5 --beam 1");
  ASSERT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("kept: alpha 0.6 beta 0: "));
  EXPECT_THAT(content(best() + "/decode.yml"), HasSubstr("length-penalty: 0.6 "));
}

TEST(BestTrial, TheOtherMetricAndThenTheModelsOwnSettingDecideATie) {
  std::vector<SearchTrial> trials(4);
  for (size_t i = 0; i < trials.size(); ++i) trials[i].length_penalty = static_cast<double>(i), trials[i].chrf = 10;
  trials[2].own = true;
  EXPECT_EQ(&best_trial(trials, "bleu"), &trials[2]);
  EXPECT_EQ(&best_trial(trials, "chrf"), &trials[2]);
  trials[3].chrf = 11;
  EXPECT_EQ(&best_trial(trials, "bleu"), &trials[3]);
  trials[1].bleu = 1;
  EXPECT_EQ(&best_trial(trials, "bleu"), &trials[1]);
  EXPECT_EQ(&best_trial(trials, "chrf"), &trials[3]);
  trials[0].chrf = std::nan("");
  EXPECT_EQ(&best_trial(trials, "chrf"), &trials[3]);
}

// Model directories of before know nothing of coverage and pruning.
TEST_F(TuneSearchTest, OldDecodingDefaultsStillLoad) {
  fs::copy(best(), path("old"));
  fs::remove(path("old/manifest.json"));
  std::ofstream(path("old/decode.yml")) << "decode:\n  beam: 3\n  length-penalty: 0.6\n  max-length-factor: 2\n  max-length-offset: 10\n";
  EXPECT_EQ(call("translate --model old --input dev.a --output old.out --quiet --threads 1 --precision f32").status, 0);
  EXPECT_EQ(call("translate --model run --input dev.a --output new.out --quiet --threads 1 --precision f32 --beam 3 --length-penalty 0.6 "
                 "--coverage-penalty 0 --prune-threshold 0")
                .status,
            0);
  EXPECT_EQ(content(path("old.out")), content(path("new.out")));
}

}  // namespace
}  // namespace starling
