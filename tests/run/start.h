// A directory with a small parallel text, and runs of a few updates on it, as the command line would start them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "run/fine_tuning.h"
#include "run/trainer.h"
#include "tests/run/word_pairs.h"

namespace starling {

class StartTest : public testing::Test {
 protected:
  StartTest()
      : directory_(std::filesystem::temp_directory_path() /
                   ("starling-start-" + std::to_string(::getpid()) + "-" + testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(directory_);
    write_word_pairs(path("a"), path("b"), 60, 8, 2, 3);
  }
  ~StartTest() override { std::filesystem::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  // A run of a few updates on the command line's terms; more overrides come last and count.
  Config config(const std::string& run, std::vector<Override> more = {}) const {
    std::vector<Override> all = given(run);
    const std::vector<Override> shape = {{"model.preset", "transformer-tiny"},
                                         {"model.width", "16"},
                                         {"model.feed-forward", "16"},
                                         {"model.heads", "2"},
                                         {"vocab.size", "40"}};
    all.insert(all.end(), shape.begin(), shape.end());
    all.insert(all.end(), more.begin(), more.end());
    return load_run_config("", all);
  }
  // The same without architecture and vocabulary.
  std::vector<Override> given(const std::string& run) const {
    return {{"data.source", path("a")},         {"data.target", path("b")},  {"train.output", path(run)},
            {"train.batch-tokens", "60"},       {"train.max-steps", "4"},    {"train.threads", "1"},
            {"train.precision", "f32"},         {"valid.source", path("a")}, {"valid.target", path("b")},
            {"valid.metrics", "cross-entropy"}, {"valid.every", "2"},        {"checkpoint.every", "2"},
            {"log.progress", "never"}};
  }
  std::string log(const std::string& run) const {
    std::ifstream file(path(run) + "/train.log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  template <class E>
  static std::string error(const Config& c) {
    try {
      run_training(c);
    } catch (const E& e) {
      return e.what();
    }
    return "no error";
  }

  std::filesystem::path directory_;
};

}  // namespace starling
