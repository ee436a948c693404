// What a validation leaves for the next one: the products of its searches, whose making takes longer than their first use, and no number.
#include "evaluation/validation.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <oneapi/dnnl/dnnl.hpp>

#include "comm/world.h"
#include "tests/run/word_pairs.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

class ValidationTest : public testing::Test {
 protected:
  ValidationTest() {
    fs::create_directories(directory_);
    config_.source = (directory_ / "a").string(), config_.target = (directory_ / "b").string();
    write_word_pairs(config_.source, config_.target, 8, 8, 2, 6);
    config_.metrics = {"cross-entropy", "bleu"};
    config_.search.beam = 2, config_.search.max_length_factor = 1, config_.search.max_length_offset = 2;
  }
  ~ValidationTest() override { fs::remove_all(directory_); }

  Vocabularies small_vocabulary() const {
    int next = 0;
    const auto lines = [&](std::string_view& line) {
      line = "red blue dog cat house tree runs sees";
      return next++ < 200;
    };
    train_vocabulary(lines, {.size = 40}, (directory_ / "spm").string());
    return {Vocabulary::load((directory_ / "spm").string()), std::nullopt};
  }
  std::unique_ptr<Model> model(const std::string& preset, Backend& backend, uint64_t seed) const {
    ModelConfig config = model_preset(preset);
    config.width = 32, config.feed_forward = 64;
    return make_model(config, vocabularies_.sizes(), backend, seed, true);
  }
  Validator validator() const { return {config_, vocabularies_}; }

  const fs::path directory_ = fs::temp_directory_path() / ("starling-validation-" + std::to_string(::getpid()));
  ValidConfig config_;
  const Vocabularies vocabularies_ = (fs::create_directories(directory_), small_vocabulary());
  const World world_ = make_local_world();
};

// oneDNN itself tells what it makes.
TEST_F(ValidationTest, TheSecondOneMakesNoProductsAnew) {
  for (const std::string preset : {"transformer-tiny", "gnmt-small"}) {
    const auto backend = make_backend("cpu:f32", 1);
    const auto trained = model(preset, *backend, 1);
    Validator kept = validator();
    const auto made = [&] {
      trained->parameters().changed();  // as an update does: weights are packed again
      testing::internal::CaptureStdout();
      dnnl::set_verbose(2);
      kept.run(*trained, *world_.comm);
      dnnl::set_verbose(0);
      const std::string told = testing::internal::GetCapturedStdout();
      int created = 0;
      for (size_t at = 0; (at = told.find(",create:", at)) != std::string::npos; ++at) ++created;
      EXPECT_NE(told.find(",exec,"), std::string::npos) << "oneDNN tells nothing";
      return created;
    };
    EXPECT_GT(made(), 20) << preset;
    EXPECT_EQ(made(), 0) << preset;
  }
}

// After an update, a validation has the numbers of one that has kept nothing.
TEST_F(ValidationTest, WhatIsKeptChangesNoNumber) {
  for (const std::string name : {"reference", "cpu:f32", "cpu:bf16"})
    for (const std::string preset : {"transformer-tiny", "gnmt-small"}) {
      const auto backend = make_backend(name, 2);
      const auto trained = model(preset, *backend, 1), updated = model(preset, *backend, 2);
      Validator kept = validator();
      kept.run(*trained, *world_.comm);
      trained->parameters().values().copy_from(updated->parameters().values());
      trained->parameters().changed();
      const Validator::Result now = kept.run(*trained, *world_.comm), fresh = validator().run(*updated, *world_.comm);
      EXPECT_EQ(now.scores, fresh.scores) << name << " " << preset;
      EXPECT_EQ(now.example, fresh.example) << name << " " << preset;
      // Another model's backend gets workers of its own.
      const auto other = make_backend(name, 1);
      EXPECT_EQ(kept.run(*model(preset, *other, 2), *world_.comm).example, fresh.example) << name << " " << preset;
    }
}

// Asked at every step of a search, however long that of a sentence is, and before every batch of the cross-entropy.
TEST_F(ValidationTest, IsGivenUpAtTheNextStep) {
  const auto backend = make_backend("cpu:f32", 1);
  const auto trained = model("transformer-tiny", *backend, 1);
  const auto asks = [&](const std::vector<std::string>& metrics, int until) {
    config_.metrics = metrics;
    int asked = 0;
    ValidatorRank rank;
    rank.stop = [&] { return ++asked == until; };
    Validator validator(config_, vocabularies_, rank);
    const Validator::Result result = validator.run(*trained, *world_.comm);
    EXPECT_EQ(result.stopped, asked == until);
    EXPECT_EQ(result.scores.empty(), result.stopped);
    return asked;
  };
  EXPECT_GE(asks({"cross-entropy"}, -1), 1);
  EXPECT_GE(asks({"bleu"}, -1), 3) << "two words and the end of sentence";
  EXPECT_EQ(asks({"cross-entropy"}, 1), 1);
  EXPECT_EQ(asks({"bleu"}, 2), 2);
}

// The share of a long one grows from 0 to 1 over both of its parts.
TEST_F(ValidationTest, ShowsHowFarItIs) {
  const auto backend = make_backend("cpu:f32", 1);
  const auto trained = model("transformer-tiny", *backend, 1);
  write_word_pairs(config_.source, config_.target, 400, 8, 2, 6);
  config_.metrics = {"bleu", "cross-entropy"}, config_.batch_tokens = 100;
  std::vector<std::string> drawn;
  ValidatorRank rank;
  rank.screen = {{}, [&](const std::string& text) { drawn.push_back(text); }, 0};
  Validator(config_, vocabularies_, rank).run(*trained, *world_.comm, "validation of update 7");
  ASSERT_GE(drawn.size(), 2u);
  EXPECT_EQ(drawn.front(), "validation of update 7: 0 %, 0:00 passed");
  EXPECT_EQ(drawn.back(), "") << "the line goes away";
}

}  // namespace
}  // namespace starling
