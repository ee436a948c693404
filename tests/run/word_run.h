// A directory with a tiny corpus and runs of a few updates on it, for tests of what a start makes, keeps and refuses.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "run/fine_tuning.h"
#include "run/trainer.h"
#include "sim/simulate.h"
#include "tests/run/word_pairs.h"

namespace starling {

class WordRunTest : public testing::Test {
 protected:
  WordRunTest()
      : directory_(std::filesystem::temp_directory_path() /
                   ("starling-run-" + std::to_string(::getpid()) + "-" + testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(directory_);
    write_word_pairs(path("a"), path("b"), 60, 8, 2, 3);
  }
  ~WordRunTest() override { std::filesystem::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  // Four updates, as from the command line; more overrides come last and count.
  std::vector<Override> given(const std::string& run, const std::vector<Override>& more = {}) const {
    std::vector<Override> all{{"data.source", path("a")},
                              {"data.target", path("b")},
                              {"train.output", path(run)},
                              {"train.batch-tokens", "60"},
                              {"train.max-steps", "4"},
                              {"train.threads", "1"},
                              {"train.precision", "f32"},
                              {"valid.source", path("a")},
                              {"valid.target", path("b")},
                              {"valid.every", "2"},
                              {"checkpoint.every", "2"},
                              {"log.progress", "never"},
                              {"valid.metrics", "cross-entropy"},
                              {"model.heads", "2"},
                              {"model.feed-forward", "16"},
                              {"model.width", "16"},
                              {"vocab.size", "40"},
                              {"model.preset", "transformer-tiny"}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Config config(const std::string& run, const std::vector<Override>& more = {}) const { return load_run_config("", given(run, more)); }
  static void train_simulated(const Config& c, int ranks) { train_simulated(std::vector<Config>(static_cast<size_t>(ranks), c)); }
  static void train_simulated(const std::vector<Config>& of_ranks) {
    Scenario scenario;
    scenario.ranks = static_cast<int>(of_ranks.size());
    simulate(scenario, [&](World& world) {
      TrainingWatch watch;
      watch.silent = true, watch.signals = false;
      run_training(of_ranks[static_cast<size_t>(world.comm->rank())], world, watch);
    });
  }
  std::set<std::string> names(const std::string& directory) const {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(path(directory))) all.insert(entry.path().filename().string());
    return all;
  }
  template <class E>
  static std::string error(const std::function<void()>& body) {
    try {
      body();
    } catch (const E& e) {
      return e.what();
    }
    return "no error";
  }

  std::filesystem::path directory_;
};

}  // namespace starling
