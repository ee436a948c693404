// How a run starts, continues and ends: what it refuses to write over, and what it says at its end.
#include "tests/run/start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/text_files.h"
#include "decode/quantization.h"
#include "evaluation/text_roles.h"
#include "run/fine_tuning.h"
#include "run/trainer.h"
#include "storage/checkpoint.h"
#include "tests/cli/directory_hash.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

TEST_F(StartTest, TheEndNamesTheLimitThatWasReached) {
  EXPECT_EQ(run_training(config("steps")), 0);
  EXPECT_THAT(log("steps"), HasSubstr("] complete: train.max-steps 4: 4 updates in "));
  EXPECT_EQ(run_training(config("steps")), 0);
  EXPECT_THAT(log("steps"), HasSubstr("already done: 4 updates in "));
  EXPECT_THAT(log("steps"), HasSubstr(", complete: train.max-steps 4; to continue, raise that limit"));
  EXPECT_EQ(run_training(config("epochs", {{"train.max-epochs", "1"}, {"train.batch-tokens", "100000"}})), 0);
  EXPECT_THAT(log("epochs"), HasSubstr("] complete: train.max-epochs 1: 1 update in "));
  EXPECT_EQ(
      run_training(config(
          "minutes",
          {{"train.max-minutes", "0.02"}, {"train.max-steps", "1000000"}, {"valid.every", "1000000"}, {"checkpoint.every", "1000000"}})),
      0);
  EXPECT_THAT(log("minutes"), HasSubstr("] complete: train.max-minutes 0.02: "));
  EXPECT_EQ(run_training(config("early", {{"train.learning-rate", "1"},
                                          {"train.warmup", "0"},
                                          {"train.ema", "0"},
                                          {"train.max-steps", "50"},
                                          {"valid.every", "1"},
                                          {"valid.early-stopping", "2"}})),
            0);
  EXPECT_THAT(log("early"), HasSubstr("] early stopping: cross-entropy not better in 2 validations: "));
}

TEST_F(StartTest, AHangUpSavesAndStopsUnlessItIsIgnored) {
  TrainingWatch watch;
  watch.updated = [](int64_t step, int64_t, int64_t) {
    if (step == 1) std::raise(SIGHUP), std::raise(SIGHUP);  // terminals send it more than once
  };
  World world = make_local_world();
  EXPECT_EQ(run_training(config("run", {{"train.max-steps", "100"}}), world, watch), 128 + SIGHUP);
  EXPECT_EQ(latest_checkpoint(*real_file_system(), path("run"))->step, 2);
  EXPECT_THAT(log("run"), HasSubstr("stopped by signal 1; the same command continues"));
  const auto before = std::signal(SIGHUP, SIG_IGN);
  EXPECT_EQ(run_training(config("nohup"), world, watch), 0);
  EXPECT_EQ(std::signal(SIGHUP, before), SIG_IGN);
}

TEST_F(StartTest, NothingIsSavedInADirectoryThatWasMadeAgain) {
  std::string made;
  TrainingWatch watch;
  watch.updated = [&](int64_t step, int64_t, int64_t) {
    if (step != 3) return;
    fs::remove_all(path("run"));
    fs::create_directories(path("run"));
    std::ofstream(path("run/lock")) << "";
    made = directory_hash(path("run"));
  };
  World world = make_local_world();
  try {
    run_training(config("run"), world, watch);
    ADD_FAILURE() << "saved in another run's directory";
  } catch (const IoError& e) {
    EXPECT_THAT(e.what(), HasSubstr("this directory was removed, or made again for another run, since this training began"));
  }
  EXPECT_EQ(directory_hash(path("run")), made);
  // The lock file alone may be removed: the directory is still this run's.
  watch.updated = [&](int64_t step, int64_t, int64_t) {
    if (step == 3) fs::remove(path("other/lock"));
  };
  EXPECT_EQ(run_training(config("other"), world, watch), 0);
  EXPECT_TRUE(fs::exists(path("other/lock")));
}

TEST_F(StartTest, ARunThatCannotBeContinuedIsRefusedOrSetAside) {
  EXPECT_EQ(run_training(config("run")), 0);
  EXPECT_THAT(error<ConfigError>(config("run", {{"train.restart", "true"}})), HasSubstr("can, after update 4; leave train.restart out"));
  for (const char* step : {"2", "4"})  // one byte of each
    std::fstream(path("run/checkpoints/step-0000000") + step + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary)
        .seekp(200)
        .put('x');
  const std::string before = directory_hash(path("run")), best = directory_hash(path("run/best"));
  EXPECT_THAT(error<ConfigError>(config("run")),
              HasSubstr("a run has been here (best/, 2 damaged checkpoints, updates in events.jsonl), but "
                        "there is no usable checkpoint to continue from"));
  EXPECT_EQ(directory_hash(path("run")), before);
  EXPECT_EQ(run_training(config("run", {{"train.restart", "true"}, {"train.max-steps", "2"}})), 0);
  EXPECT_EQ(directory_hash(path("run/before-restart/best")), best);
  EXPECT_TRUE(fs::exists(path("run/before-restart/checkpoints/step-00000004")));
  EXPECT_THAT(log("run"), HasSubstr("this run starts over; models and logs of the one before are in " + path("run/before-restart")));
  EXPECT_FALSE(load_config(path("run/config.yml")).train.restart);

  // Without checkpoints/, and with nothing but the record of updates.
  fs::remove_all(path("run/checkpoints"));
  EXPECT_THAT(error<ConfigError>(config("run")), HasSubstr("a run has been here (best/, updates in events.jsonl)"));
  fs::remove_all(path("run/best"));
  EXPECT_THAT(error<ConfigError>(config("run")), HasSubstr("a run has been here (updates in events.jsonl)"));
  fs::remove(path("run/events.jsonl"));
  EXPECT_THAT(error<ConfigError>(config("run")), HasSubstr("a run has been here (updates in train.log)"));
  fs::remove(path("run/train.log"));
  EXPECT_EQ(run_training(config("run")), 0);
}

// As a kill leaves it while the first checkpoint is written. Nothing is lost that the same command does not make again.
TEST_F(StartTest, ARunThatEndedBeforeItsFirstCheckpointBeginsAnew) {
  const std::vector<Override> options{{"valid.every", "2"}, {"log.every", "1"}, {"checkpoint.every", "1000"}};
  EXPECT_EQ(run_training(config("whole", options)), 0);
  TrainingWatch watch;
  watch.updated = [](int64_t step, int64_t, int64_t) {
    if (step == 3) throw std::runtime_error("killed");
  };
  World world = make_local_world();
  EXPECT_THROW(run_training(config("run", options), world, watch), std::runtime_error);
  ASSERT_TRUE(fs::exists(path("run/best")));
  const std::string best = directory_hash(path("run/best"));
  fs::create_directories(path("run/checkpoints/.tmp-step-00000004"));
  std::ofstream(path("run/checkpoints/.tmp-step-00000004/model.safetensors")) << "half";
  EXPECT_EQ(run_training(config("run", options)), 0);
  EXPECT_THAT(log("run"), HasSubstr("the run that was here ended before its first checkpoint was complete: this run starts over"));
  EXPECT_EQ(directory_hash(path("run/before-restart/best")), best);
  EXPECT_FALSE(fs::exists(path("run/before-restart/checkpoints/.tmp-step-00000004")));
  const auto weights = [&](const std::string& run) {
    return real_file_system()->read_file(path(run + "/checkpoints/step-00000004/model.safetensors"));
  };
  EXPECT_EQ(weights("run"), weights("whole"));
  EXPECT_EQ(run_training(config("run", options)), 0) << "there is a checkpoint to go on from";
  EXPECT_FALSE(fs::exists(path("run/before-restart-2")));
}

TEST_F(StartTest, SaysOnceHowMuchOfTheTextTheVocabularyDoesNotKnow) {
  std::string source, target;
  for (int i = 0; i < 50; ++i) source += i == 7 ? "abcde abcde 漢\n" : "abcde abcde\n", target += "abcde abcde abcde\n";
  std::ofstream(path("s")) << source, std::ofstream(path("t")) << target;
  const auto with = [&](const std::string& run, const std::string& coverage, const std::string& steps) {
    return run_training(config(run, {{"data.source", path("s")},
                                     {"data.target", path("t")},
                                     {"vocab.character-coverage", coverage},
                                     {"vocab.size", "16"},
                                     {"train.max-steps", steps}}));
  };
  EXPECT_EQ(with("run", "0.99", "2"), 0);
  EXPECT_EQ(with("run", "0.99", "4"), 0);
  const std::string said =
      "warning: the vocabulary does not know characters in 2 % of the source sentences and 0 % of the target sentences";
  EXPECT_THAT(log("run"), HasSubstr(said));
  EXPECT_EQ(log("run").find(said), log("run").rfind(said));
  EXPECT_EQ(with("known", "1", "2"), 0);
  EXPECT_THAT(log("known"), Not(HasSubstr("does not know characters")));
}

TEST_F(StartTest, TheBestModelIsReplacedOnlyByABetterOne) {
  const std::vector<Override> often = {
      {"valid.every", "1"}, {"train.learning-rate", "1e-2"}, {"train.warmup", "0"}, {"train.ema", "0"}, {"train.schedule", "inverse-sqrt"}};
  const auto with = [&](std::vector<Override> more) {
    more.insert(more.begin(), often.begin(), often.end());
    return config("run", more);
  };
  EXPECT_EQ(run_training(with({})), 0);
  const auto files = real_file_system();
  ASSERT_EQ(best_checkpoint(*files, path("run"))->step, 4);
  const std::string best = directory_hash(path("run/best"));
  // From update 2 on, slower: better than update 2, and worse than what lies there.
  fs::remove_all(path("run/checkpoints/step-00000004"));
  EXPECT_EQ(run_training(with({{"train.learning-rate", "1e-5"}})), 0);
  EXPECT_THAT(log("run"), HasSubstr("run/best remains the model of update 4: its cross-entropy of "));
  EXPECT_THAT(log("run"), HasSubstr(", but best/ remains the model of update 4 with cross-entropy "));
  EXPECT_EQ(directory_hash(path("run/best")), best);
  // Faster again: what comes out is better in the end.
  EXPECT_EQ(run_training(with({{"train.max-steps", "12"}})), 0);
  EXPECT_EQ(best_checkpoint(*files, path("run"))->step, 12);
  const std::string second = directory_hash(path("run/best"));
  // By another text nothing can be compared.
  write_word_pairs(path("c"), path("d"), 20, 4, 2, 3);
  EXPECT_EQ(run_training(with({{"train.max-steps", "13"}, {"valid.source", path("c")}, {"valid.target", path("d")}})), 0);
  EXPECT_EQ(directory_hash(path("run/best-before-13")), second);
  EXPECT_EQ(best_checkpoint(*files, path("run"))->step, 13);
}

// Codes that nobody gave are not in the file, which versions without the keys read then.
TEST_F(StartTest, LanguagesGoWithTheModel) {
  const auto files = real_file_system();
  const auto languages = [&](const std::string& model) { return describe_model(*files, path(model)).languages; };
  EXPECT_EQ(run_training(config("run", {{"train.max-steps", "2"}})), 0);
  EXPECT_EQ(languages("run"), Languages());
  EXPECT_THAT(read_text_file(path("run/best/config.yml")), Not(HasSubstr("language")));
  const std::vector<Override> codes{{"data.source-language", "en"}, {"data.target-language", "pt-BR"}};
  EXPECT_EQ(run_training(config("run", codes)), 0);
  EXPECT_EQ(languages("run/checkpoints/step-00000004"), (Languages{"en", "pt-BR"}));
  EXPECT_EQ(run_training(config("run", {{"train.max-steps", "6"}})), 0);  // goes on with them
  EXPECT_EQ(languages("run/checkpoints/step-00000006"), (Languages{"en", "pt-BR"}));
  EXPECT_EQ(run_training(config("tuned", {{"train.initial-model", path("run/checkpoints/step-00000006")}, {"data.target-language", "pt"}})),
            0);
  EXPECT_EQ(languages("tuned"), (Languages{"en", "pt"}));
}

TEST_F(StartTest, WhatARunCannotChangeIsRefusedOrKept) {
  EXPECT_EQ(run_training(config("run", {{"vocab.sample-lines", "50"}})), 0);
  const std::string before = directory_hash(path("run"));
  const auto again = [&](std::vector<Override> more) {
    std::vector<Override> all = given("run");
    all.insert(all.end(),
               {{"model.preset", "transformer-tiny"}, {"model.width", "16"}, {"model.feed-forward", "16"}, {"model.heads", "2"}});
    all.insert(all.end(), more.begin(), more.end());
    return load_run_config("", all);
  };
  EXPECT_THAT(error<ConfigError>(again({{"vocab.size", "50"}})), HasSubstr("vocab.size is 50, but the vocabulary of the run "));
  EXPECT_THAT(error<ConfigError>(again({{"vocab.character-coverage", "1"}})), HasSubstr("was made with vocab.character-coverage 0.9999"));
  EXPECT_THAT(error<ConfigError>(again({{"vocab.sample-lines", "60"}})),
              HasSubstr("this run was started with vocab.sample-lines 50, and changing it to 60 has no effect"));
  EXPECT_THAT(error<ConfigError>(again({{"train.initial-model", path("another")}})),
              HasSubstr("this run was started with train.initial-model \"\", and changing"));
  EXPECT_THAT(error<ConfigError>(again({{"train.initial-model", path("run")}})),
              HasSubstr("is the model of the run that train.output names, " + path("run") + ": leave it out to continue that run"));
  EXPECT_EQ(directory_hash(path("run")), before);
  EXPECT_EQ(run_training(again({{"train.max-steps", "5"}})), 0);  // not told: as it was
  EXPECT_EQ(load_config(path("run/config.yml")).vocab.training.size, 40);
  EXPECT_EQ(load_config(path("run/config.yml")).vocab.training.sample_lines, 50);
  // A vocabulary that is there already.
  EXPECT_THAT(error<ConfigError>(config("new", {{"vocab.source", path("run/vocab.spm")}, {"vocab.size", "50"}})),
              HasSubstr("but " + path("run/vocab.spm") + " was made with vocab.size 40"));
  EXPECT_FALSE(fs::exists(path("new")));
}

// One key for the size of two vocabularies: where they differ, neither can be told by it.
TEST_F(StartTest, VocabulariesOfUnlikeSizesAreUsedTogether) {
  const std::vector<Override> two{{"vocab.joint", "false"}, {"model.tied-embeddings", "none"}, {"train.max-steps", "2"}};
  const auto with = [&](std::vector<Override> more) {
    more.insert(more.end(), two.begin(), two.end());
    return more;
  };
  EXPECT_EQ(run_training(config("forty", with({}))), 0);
  EXPECT_EQ(run_training(config("thirty", with({{"vocab.size", "30"}}))), 0);
  std::vector<Override> all = given("both");
  for (const Override& o : with({{"vocab.source", path("forty/source.spm")},
                                 {"vocab.target", path("thirty/target.spm")},
                                 {"model.preset", "transformer-tiny"},
                                 {"model.width", "16"},
                                 {"model.feed-forward", "16"},
                                 {"model.heads", "2"}}))
    all.push_back(o);
  EXPECT_EQ(run_training(load_run_config("", all)), 0);
  all.emplace_back("train.max-steps", "4");
  EXPECT_EQ(run_training(load_run_config("", all)), 0);
  EXPECT_EQ(latest_checkpoint(*real_file_system(), path("both"))->step, 4);
}

TEST_F(StartTest, AnEmptyValidationTextIsFoundBeforeAnythingIsMade) {
  std::ofstream(path("none"));
  EXPECT_THAT(error<DataError>(config("run", {{"valid.source", path("none")}, {"valid.target", path("none")}})),
              HasSubstr("none: no sentences to validate on"));
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(StartTest, OneTextInTwoRolesIsAWarning) {
  write_word_pairs(path("c"), path("d"), 20, 4, 2, 3);
  const std::vector<Override> apart = {{"valid.source", path("c")}, {"valid.target", path("d")}};
  Config c = config("run", apart);
  EXPECT_THAT(same_texts(c), testing::IsEmpty());
  c.data.train[0].target = path("a");
  c.valid.source = path("a");
  EXPECT_THAT(same_texts(c),
              testing::ElementsAre(path("a") + " is both source and target of the training text, so the model learns to copy",
                                   HasSubstr("the validation text " + path("a") + " is also training text: its scores do not show")));
  fs::create_symlink(path("d"), path("link"));
  c = config("run", apart);
  c.valid.source = path("link");
  EXPECT_THAT(
      same_texts(c),
      testing::ElementsAre(path("link") + " is both source and target of the validation text, so scores show how well the model copies"));
  EXPECT_EQ(run_training(config("run", {{"train.max-steps", "1"}})), 0);
  EXPECT_THAT(log("run"), HasSubstr("warning: the validation text " + path("a") + " is also training text"));
}

TEST_F(StartTest, ADamagedBestModelIsKeptAside) {
  EXPECT_EQ(run_training(config("run")), 0);
  std::ofstream(path("run/best/decode.yml"), std::ios::app) << "# by hand\n";
  EXPECT_EQ(run_training(config("run", {{"train.max-steps", "12"}})), 0);
  EXPECT_THAT(log("run"), HasSubstr("is not the intact model that was saved; it is kept in " + path("run/best-before-")));
}

// The training files may have grown or gone when a run goes on; its record tells what it began with.
TEST_F(StartTest, ARunGoesOnWithTheWarmUpThatItsCorpusGaveIt) {
  EXPECT_EQ(run_training(config("run")), 0);
  EXPECT_NE(log("run").find("learning rate 0.0016 after 1 update of warm-up"), std::string::npos) << log("run");
  fs::resize_file(path("b"), fs::file_size(path("b")) + (int64_t{1} << 32));
  const Config on = config("run");
  EXPECT_EQ(on.train.optimizer.warmup, 1) << "an eighth of its updates or one";
  EXPECT_EQ(on.train.optimizer.learning_rate, 1.6e-3);
  EXPECT_EQ(on.model.dropout, 0.3);
  EXPECT_EQ(config("other", {{"train.max-steps", "100000"}}).train.optimizer.learning_rate, 5e-4);
  EXPECT_EQ(config("other").model.dropout, 0.1);
  EXPECT_EQ(config("run", {{"train.warmup", "7"}}).train.optimizer.learning_rate, 1.6e-3) << "each key by itself";
}

// Keys that a command does not give come from the run's record, which people may edit; the checkpoint knows what it was trained with.
TEST_F(StartTest, ARunTellsWhatHasChangedSinceItsCheckpoint) {
  EXPECT_EQ(run_training(config("run")), 0);
  EXPECT_EQ(run_training(config("run", {{"train.max-steps", "6"}})), 0);
  EXPECT_THAT(log("run"), HasSubstr("changed since the checkpoint: train.max-steps 4 -> 6\n"));
  const std::string before = log("run");
  EXPECT_EQ(before.find("changed since"), before.rfind("changed since")) << before;
  std::ifstream file(path("run") + "/config.yml");
  std::string record{std::istreambuf_iterator<char>(file), {}};
  const std::string rate = "  learning-rate: 0.0016 ";
  ASSERT_NE(record.find(rate), std::string::npos);
  std::ofstream(path("run") + "/config.yml") << record.replace(record.find(rate), rate.size(), "  learning-rate: 0.009 ");
  EXPECT_EQ(run_training(config("run", {{"train.max-steps", "8"}})), 0);
  EXPECT_THAT(log("run"), HasSubstr("changed since the checkpoint: train.learning-rate 0.0016 -> 0.009\n"));
  // Without the record the checkpoint tells what the run had.
  std::ofstream(path("run") + "/config.yml").close();
  EXPECT_EQ(config("run").train.optimizer.learning_rate, 9e-3);
  fs::remove(path("run") + "/config.yml");
  EXPECT_EQ(config("run").train.optimizer.learning_rate, 9e-3);
}

// A limit that nobody gives any more is no end: the run goes on to the one that its corpus has, as a new run would.
TEST_F(StartTest, ARunThatLosesItsLimitEndsWithItsCorpus) {
  std::vector<Override> keys = given("run");
  for (const Override& o : std::vector<Override>{{"model.preset", "transformer-tiny"},
                                                 {"model.width", "16"},
                                                 {"model.feed-forward", "16"},
                                                 {"model.heads", "2"},
                                                 {"vocab.size", "40"}})
    keys.push_back(o);
  const auto with = [&](const std::string& limit, const std::string& value) {
    std::vector<Override> all = keys;
    std::erase_if(all, [](const Override& o) { return o.first == "train.max-steps"; });
    if (!limit.empty()) all.emplace_back(limit, value);
    return load_run_config("", all);
  };
  const int64_t corpus = with("", "").train.max_tokens;
  ASSERT_GT(corpus, 0) << "a new run's";
  const std::vector<Override> limits{{"train.max-minutes", "0.02"}, {"train.max-steps", "4"}, {"train.max-epochs", "1"}};
  for (const auto& [limit, value] : limits) {
    fs::remove_all(path("run"));
    EXPECT_EQ(run_training(with(limit, value)), 0);
    const Config on = with("", "");
    EXPECT_EQ(on.train.max_tokens, corpus) << limit;
    EXPECT_EQ(step_limit(on.train), kNoStepLimit) << limit;
    EXPECT_EQ(on.train.max_minutes, 0);
    EXPECT_EQ(with(limit, value).train.max_tokens, 0) << "the limit is given again";
  }
  // An end in tokens stays, as does that of older versions, which were told none.
  fs::remove_all(path("run"));
  EXPECT_EQ(run_training(with("train.max-tokens", "180")), 0);
  EXPECT_EQ(with("", "").train.max_tokens, 180);
  std::string record = read_text_file(path("run/config.yml"));
  record.replace(record.find("max-tokens: 180"), 15, "max-tokens: 0");
  std::ofstream(path("run/config.yml")) << record;
  EXPECT_EQ(step_limit(with("", "").train), 100000);
}

}  // namespace
}  // namespace starling
