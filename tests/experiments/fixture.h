// A directory with a small demo corpus and a training configuration of a tiny model, for tests of races.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "demo/corpus.h"

namespace starling {

class RaceTest : public testing::Test {
 protected:
  RaceTest()
      : directory_(std::filesystem::temp_directory_path() /
                   ("starling-race-" + std::to_string(::getpid()) + "-" + testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    write_demo_corpus(directory_, 300, 24, 8);
    write_training("preset: transformer-tiny, width: 16, feed-forward: 32, heads: 2, encoder-layers: 1, decoder-layers: 1, dropout: 0.1");
  }
  ~RaceTest() override { std::filesystem::remove_all(directory_); }

  // train.yml with these keys of the model.
  void write_training(const std::string& model) const {
    write("train.yml", "data: {source: " + path("train.en") + ", target: " + path("train.de") + "}\n" +
                           "valid: {source: " + path("valid.en") + ", target: " + path("valid.de") + "}\n" +
                           "vocab: {size: 120, character-coverage: 1.0}\nmodel: {" + model + "}\n" +
                           "train: {batch-tokens: 200, precision: f32, warmup: 4}\n");
  }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::filesystem::path directory_;
};

constexpr const char* kTestCluster = "cluster: {forward-gflops: 1, backward-gflops: 2, update-gb-s: 3, memory-gb-s: 5}\n";

constexpr const char* kRecipe = R"(race:
  train: train.yml
  output: DIRECTORY
  workers: [2]
  seeds: [1, 2]
  finalists: 1
  tokens: 2400
  longer: 1.5
  validate-every: 600
  learning-rates: [0.003, 0.001]
  final-metrics: [bleu]
  valid.beam: 1
  networks:
    - {name: fast, network: 10gbe}
    - {name: slow, r: 2}
  targets:
    - {metric: cross-entropy, margin: 0.02}
  arms:
    - name: plain
      strategy.bucket-mib: 0.01
    - name: twin
      timed: true
      control: true
      strategy.bucket-mib: 0.01
    - name: servers
      strategy.name: parameter-server
      strategy.servers: 1
)";

class WholeRace : public RaceTest {
 protected:
  std::string recipe(const std::string& output, const std::string& text = kRecipe) const {
    std::string whole = text + kTestCluster;
    if (const size_t at = whole.find("DIRECTORY"); at != std::string::npos) whole.replace(at, 9, path(output));
    write("recipe.yml", whole);
    return path("recipe.yml");
  }
  // Cells of a CSV file by column, of each line.
  std::vector<std::map<std::string, std::string>> csv(const std::string& name) const {
    std::istringstream text(read(name));
    std::vector<std::string> names;
    std::vector<std::map<std::string, std::string>> lines;
    for (std::string line; std::getline(text, line);) {
      std::vector<std::string> cells;
      std::istringstream cut(line + ",");
      for (std::string c; std::getline(cut, c, ',');) cells.push_back(c);
      if (names.empty()) {
        names = cells;
        continue;
      }
      EXPECT_EQ(cells.size(), names.size()) << line;
      lines.emplace_back();
      for (size_t i = 0; i < names.size() && i < cells.size(); ++i) lines.back()[names[i]] = cells[i];
    }
    return lines;
  }
};

}  // namespace starling
