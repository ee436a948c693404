// What a run takes over from the model that it starts from, and what it refuses or warns of.
#include <gmock/gmock.h>

#include "decode/quantization.h"
#include "run/fine_tuning.h"
#include "tests/cli/directory_hash.h"
#include "tests/run/start.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

TEST_F(StartTest, FineTuningTakesArchitectureAndVocabularyFromTheInitialModel) {
  EXPECT_EQ(run_training(config("first", {{"model.dropout", "0.2"}, {"vocab.type", "bpe"}, {"model.norm", "post"}})), 0);
  const auto tuned = [&](std::vector<Override> more = {}) {
    std::vector<Override> all = given("tuned");
    all.emplace_back("train.initial-model", path("first"));
    all.insert(all.end(), more.begin(), more.end());
    return load_run_config("", all);
  };
  const Config c = tuned();
  EXPECT_EQ(c.model.preset, "transformer-tiny");
  EXPECT_EQ(c.model.width, 16);
  EXPECT_EQ(c.model.norm, NormPlace::post);
  EXPECT_EQ(c.model.dropout, 0.2);
  EXPECT_EQ(c.vocab.training.size, 40);
  EXPECT_EQ(c.vocab.training.type, "bpe");
  // What is told besides has to agree, and the message names both.
  EXPECT_THAT(error<ConfigError>(tuned({{"model.width", "32"}})), testing::AllOf(HasSubstr("  width: 16\n"), HasSubstr("  width: 32\n")));
  EXPECT_THAT(error<ConfigError>(tuned({{"model.preset", "transformer-base"}})), HasSubstr("  width: 512\n"));
  EXPECT_THAT(error<ConfigError>(tuned({{"vocab.size", "50"}})),
              HasSubstr("vocab.size is 50, but the vocabulary of train.initial-model " + path("first") + " was made with vocab.size 40"));
  EXPECT_THAT(error<ConfigError>(tuned({{"vocab.type", "unigram"}})), HasSubstr("was made with vocab.type bpe"));
  EXPECT_THAT(error<ConfigError>(tuned({{"vocab.joint", "false"}, {"model.tied-embeddings", "decoder"}})), HasSubstr("tied-embeddings"));
  EXPECT_FALSE(fs::exists(path("tuned")));
  // A dump has it all, and reads back to the same.
  for (const bool full : {false, true}) {
    std::ofstream(path("dump.yml")) << dump_config(tuned({{"model.dropout", "0.1"}}), full);
    EXPECT_EQ(dump_config(load_run_config(path("dump.yml")), true), dump_config(tuned({{"model.dropout", "0.1"}}), true));
  }
  EXPECT_EQ(run_training(c), 0);
  // The run goes on without the model it came from, and without being told what it is.
  fs::remove_all(path("first"));
  EXPECT_EQ(run_training(tuned({{"train.max-steps", "5"}})), 0);
  EXPECT_EQ(latest_checkpoint(*real_file_system(), path("tuned"))->step, 5);
}

TEST_F(StartTest, AnInitialModelOf8BitsIsAWarning) {
  EXPECT_EQ(run_training(config("run", {{"train.max-steps", "1"}})), 0);
  const auto files = real_file_system();
  const auto backend = make_backend("cpu:f32", 1);
  const LoadedModel loaded = load_model(*files, path("run"), *backend);
  quantize_all(*loaded.model);
  const ModelDescription& d = loaded.description;
  publish_directory(*files, path("small"), 0, model_parts(*loaded.model, d.config, d.languages, d.vocabularies, d.search, 0));
  EXPECT_EQ(run_training(config("tuned", {{"train.initial-model", path("small")}, {"train.max-steps", "1"}})), 0);
  EXPECT_THAT(log("tuned"), HasSubstr("warning: the weights of train.initial-model " + path("small") + " are rounded to 8 bits"));
}

// The bound falls from clip-start to clip over the run; a checkpoint has the bound of its own update only.
TEST_F(StartTest, AContinuedFineTuningFallsToTheSameBound) {
  std::vector<Override> shape = given("first");
  for (const Override& o :
       std::vector<Override>{{"model.preset", "gnmt-small"}, {"model.width", "16"}, {"model.clip", "1"}, {"vocab.size", "40"}})
    shape.push_back(o);
  EXPECT_EQ(run_training(load_run_config("", shape)), 0);
  std::vector<Override> tuned = given("tuned");
  for (const Override& o : std::vector<Override>{
           {"train.initial-model", path("first")}, {"train.clip-start", "8"}, {"train.clip-steps", "8"}, {"train.max-steps", "4"}})
    tuned.push_back(o);
  EXPECT_EQ(load_run_config("", tuned).model.clip, 1);
  EXPECT_EQ(run_training(load_run_config("", tuned)), 0);
  EXPECT_EQ(load_run_config("", tuned).model.clip, 1);
  // A run that was told its model is told its bound too: left out, it is off.
  std::erase_if(shape, [](const Override& o) { return o.first == "model.clip"; });
  EXPECT_EQ(load_run_config("", shape).model.clip, 0);
}

// A model that somebody put beside a run, or that a restart set aside, is no model of the run.
TEST_F(StartTest, AModelThatLiesInTheRunsDirectoryCanBeTuned) {
  EXPECT_EQ(run_training(config("first")), 0);
  fs::create_directories(path("tuned"));
  fs::copy(path("first/best"), path("tuned/pre"), fs::copy_options::recursive);
  const std::vector<Override> tuned = {{"train.initial-model", path("tuned/pre")}};
  EXPECT_EQ(run_training(config("tuned", tuned)), 0);
  EXPECT_EQ(run_training(config("tuned", {{"train.initial-model", path("tuned/pre")}, {"train.max-steps", "6"}})), 0);
  EXPECT_EQ(run_training(config("tuned", {{"train.max-steps", "8"}})), 0);
  EXPECT_NE(log("tuned").find("8 updates"), std::string::npos) << log("tuned");
}

}  // namespace
}  // namespace starling
