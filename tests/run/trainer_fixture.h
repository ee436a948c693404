// A directory with a few hundred sentences of ten words and the configuration of a tiny model, for tests of whole runs.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "base/sha256.h"
#include "settings/config.h"

namespace starling {

// "Translation": each word has its counterpart, the order is reversed.
inline void write_corpus(const std::string& source, const std::string& target, int lines, uint64_t seed, int longest = 6) {
  const std::vector<std::string> a{"red", "blue", "green", "dog", "cat", "house", "tree", "runs", "sees", "big"};
  const std::vector<std::string> b{"rot", "blau", "gruen", "Hund", "Katze", "Haus", "Baum", "rennt", "sieht", "gross"};
  Random random(seed, 1);
  std::ofstream s(source), t(target);
  for (int i = 0; i < lines; ++i) {
    std::string from, to;
    for (int n = 2 + static_cast<int>(random.below(static_cast<uint64_t>(longest) - 1)); n > 0; --n) {
      const size_t w = random.below(a.size());
      from += (from.empty() ? "" : " ") + a[w];
      to = b[w] + (to.empty() ? "" : " ") + to;
    }
    s << from << "\n", t << to << "\n";
  }
}

class TrainerTest : public testing::Test {
 protected:
  TrainerTest()
      : directory_(std::filesystem::temp_directory_path() / ("starling-trainer-" + std::to_string(::getpid()) + "-" +
                                                             testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(directory_);
    write_corpus(path("train.a"), path("train.b"), 600, 1);
    write_corpus(path("valid.a"), path("valid.b"), 20, 2);
  }
  ~TrainerTest() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  Config config(const std::string& run) const {
    Config c = parse_config(
        "model:\n  preset: transformer-tiny\n  width: 32\n  feed-forward: 64\n  attention-dropout: 0.1\n  feed-forward-dropout: 0.1\n",
        "test");
    c.data.train = {{path("train.a"), path("train.b"), "", 1}};
    c.vocab.training.size = 60;
    c.train.output = path(run);
    c.train.batch_tokens = 200, c.train.max_steps = 30, c.train.threads = 2, c.train.precision = "f32";
    c.train.optimizer.warmup = 10, c.train.optimizer.learning_rate = 3e-3, c.train.optimizer.ema = 0.9;
    c.checkpoint.every = 10, c.valid.every = 10, c.valid.source = path("valid.a"), c.valid.target = path("valid.b");
    c.log.progress = "never", c.log.every = 5;
    return c;
  }

  std::string hash(const std::string& run, const std::string& step, const std::string& file) const {
    const auto files = real_file_system();
    return sha256_file(*files, path(run) + "/checkpoints/step-" + step + "/" + file);
  }

  std::filesystem::path directory_;
};

}  // namespace starling
