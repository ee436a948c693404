// A whole training run on simulated ranks, over word pairs, in a directory of its own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "run/trainer.h"
#include "sim/simulate.h"
#include "storage/checkpoint.h"
#include "storage/safetensors.h"
#include "tests/run/word_pairs.h"

namespace starling {

namespace fs = std::filesystem;

class DistributedTrainer : public testing::Test {
 protected:
  DistributedTrainer()
      : directory_(fs::temp_directory_path() / ("starling-distributed-" + std::to_string(::getpid()) + "-" +
                                                testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(directory_);
    write_word_pairs(path("a"), path("b"), 400, 8, 2, 6);
    write_word_pairs(path("valid.a"), path("valid.b"), 30, 8, 2, 6);
  }
  ~DistributedTrainer() override { fs::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  Config config(const std::string& run) const {
    Config c = parse_config("model:\n  preset: transformer-tiny\n  width: 32\n  feed-forward: 64\n", "test");
    c.data.train = {{path("a"), path("b"), "", 1}};
    c.vocab.training.size = 40;
    c.train.output = path(run);
    c.train.batch_tokens = 200, c.train.max_steps = 20, c.train.threads = 1, c.train.precision = "f32";
    c.train.optimizer.warmup = 10, c.train.optimizer.learning_rate = 3e-3, c.train.optimizer.ema = 0.9;
    c.strategy.bucket_mib = 0.02, c.strategy.check_every = 5;
    c.checkpoint.every = 10, c.valid.every = 10, c.valid.source = path("valid.a"), c.valid.target = path("valid.b");
    c.valid.metrics = {"cross-entropy", "bleu"}, c.valid.search.beam = 1;
    c.log.progress = "never", c.log.every = 5;
    return c;
  }

  static int run(const Config& c, int ranks) {
    Scenario scenario;
    scenario.ranks = ranks;
    return run(c, scenario);
  }
  static int run(const Config& c, const Scenario& scenario) {
    int status = -1;
    simulate(scenario, [&](World& world) {
      const int mine = run_training(c, world);
      if (world.comm->rank() == 0) status = mine;
    });
    return status;
  }

  std::string hash(const std::string& run, int step, const std::string& file) const {
    const auto files = real_file_system();
    return sha256_file(*files, path(run) + fmt::format("/checkpoints/step-{:08}/{}", step, file));
  }
  // What a rank has of a state of the parameters, in the order of their names.
  std::vector<float> saved(const std::string& run, int step, int rank, const std::string& state) const {
    const auto files = real_file_system();
    const SafetensorsFile all(*files, path(run) + fmt::format("/checkpoints/step-{:08}/rank-{}.safetensors", step, rank));
    std::map<std::string, std::span<const std::byte>> tensors;
    for (const NamedBytes& t : all.tensors())
      if (t.name.starts_with(state + "/")) tensors[t.name] = t.data;
    std::vector<float> values;
    for (const auto& [name, data] : tensors) {
      values.resize(values.size() + data.size() / 4);
      std::memcpy(values.data() + values.size() - data.size() / 4, data.data(), data.size());
    }
    return values;
  }
  std::vector<float> weights(const std::string& run, int step) const { return saved(run, step, 0, "parameters"); }
  // The model and the shards of all ranks.
  std::vector<std::string> hashes(const std::string& run, int step, int ranks) const {
    std::vector<std::string> all{hash(run, step, "model.safetensors")};
    for (int r = 0; r < ranks; ++r)
      if (const std::string name = fmt::format("rank-{}.safetensors", r);
          fs::exists(path(run) + fmt::format("/checkpoints/step-{:08}/{}", step, name)))
        all.push_back(hash(run, step, name));
    EXPECT_GT(all.size(), 1u);
    return all;
  }
  nlohmann::json state(const std::string& run, int step) const {
    std::ifstream file(path(run) + fmt::format("/checkpoints/step-{:08}/state.json", step));
    return nlohmann::json::parse(file);
  }
  // Of every weight of the model.
  std::vector<std::vector<std::byte>> model(const std::string& run, int step) const {
    const auto files = real_file_system();
    const SafetensorsFile file(*files, path(run) + fmt::format("/checkpoints/step-{:08}/model.safetensors", step));
    std::vector<std::vector<std::byte>> all;
    for (const NamedBytes& t : file.tensors()) all.emplace_back(t.data.begin(), t.data.end());
    return all;
  }
  // Cross-entropies of the validations, in their order.
  std::vector<double> validations(const std::string& run) const {
    std::ifstream events(path(run) + "/events.jsonl");
    std::vector<double> all;
    for (std::string line; std::getline(events, line);)
      if (const auto event = nlohmann::json::parse(line); event["type"] == "validation") all.push_back(event["scores"]["cross-entropy"]);
    return all;
  }

  fs::path directory_;
};

inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) difference += (a[i] - b[i]) * (a[i] - b[i]), norm += a[i] * a[i];
  return std::sqrt(difference / norm);
}

}  // namespace starling
