// The whole trainer with a model in stages and shards: the model of one worker, exact resumption, and checkpoints that any other layout
// continues.
#include "tests/strategies/distributed_run.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

class PipelineTrainer : public DistributedTrainer {
 protected:
  // The model deployed after an update, by name.
  std::map<std::string, std::vector<float>> deployed(const std::string& run, int step) const {
    const auto files = real_file_system();
    const SafetensorsFile file(*files, path(run) + fmt::format("/checkpoints/step-{:08}/model.safetensors", step));
    std::map<std::string, std::vector<float>> all;
    for (const NamedBytes& t : file.tensors()) {
      all[t.name].resize(t.data.size() / 4);
      std::memcpy(all[t.name].data(), t.data.data(), t.data.size());
    }
    return all;
  }
  double apart(const std::string& a, const std::string& b, int step) const {
    const auto one = deployed(a, step), other = deployed(b, step);
    EXPECT_EQ(one.size(), other.size());
    std::vector<float> x, y;
    for (const auto& [name, values] : one) {
      x.insert(x.end(), values.begin(), values.end());
      y.insert(y.end(), other.at(name).begin(), other.at(name).end());
    }
    return distance(x, y);
  }
  Config in_stages(const std::string& run, int64_t stages, int64_t shards = 1) const {
    Config c = config(run);
    c.parallel.pipeline = stages, c.parallel.tensor = shards;
    return c;
  }
};

TEST_F(PipelineTrainer, TrainsTheModelOfOneWorker) {
  ASSERT_EQ(run_training(config("one")), 0);
  for (const auto& [stages, shards, ranks] : {std::tuple(2, 1, 2), {2, 1, 4}, {3, 1, 3}, {1, 2, 2}, {2, 2, 4}}) {
    const std::string run_name = fmt::format("stages-{}-shards-{}-of-{}", stages, shards, ranks);
    Config c = in_stages(run_name, stages, shards);
    if (ranks == 3) c.parallel.stages = {1, 3, 1};
    if (ranks == 4 || ranks == 3) c.valid.metrics = {"cross-entropy"};  // measured in stages; with translations in shards
    ASSERT_EQ(run(c, ranks), 0);
    EXPECT_LT(apart("one", run_name, 20), 2e-3) << run_name;
    const std::vector<double> expected = validations("one"), found = validations(run_name);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4) << run_name;
    std::ifstream log(path(run_name) + "/train.log");
    const std::string told((std::istreambuf_iterator<char>(log)), {});
    if (ranks == 3) {
      EXPECT_THAT(told, testing::HasSubstr("stage 2 of 3 (rank 1): encoder 1 to decoder 1, "));
    }
    if (shards == 2) {
      EXPECT_THAT(told, testing::HasSubstr(fmt::format("stage 1 of {}, shard 2 of 2 (rank 1): encoder 0 to ", stages)));
    }
    if (stages == 2 && shards == 1) {
      EXPECT_THAT(told, testing::HasSubstr("stage 1 of 2 (rank 0): encoder 0 to "));
      EXPECT_THAT(told, testing::HasSubstr(" to output, "));
      EXPECT_THAT(told,
                  testing::HasSubstr(fmt::format("computed {} at a time", ranks == 2 ? 25 : 13)));  // 200 in 8 pieces, and halves of it
    }
    // The last model is the best one, and was written by the stages together both times.
    const auto files = real_file_system();
    EXPECT_EQ(sha256_file(*files, path(run_name) + "/best/model.safetensors"), hash(run_name, 20, "model.safetensors")) << run_name;
  }
}

TEST_F(PipelineTrainer, AContinuedRunEqualsAnUninterruptedOneBitForBit) {
  using Case = std::pair<std::string, int>;
  for (const auto& [strategy, shards] : of_cases<Case>({{"all-reduce", 1},
                                                        {"sparse-local", 2},
                                                        {"sharded", 1},
                                                        {"model-average", 1},
                                                        {"sparse-local", 1},
                                                        {"all-reduce", 2},
                                                        {"sharded", 2}},
                                                       2)) {
    const auto with = [&, &strategy = strategy, &shards = shards](const std::string& run_name, int64_t steps) {
      Config c = in_stages(run_name, shards == 1 ? 2 : 1, shards);
      c.train.max_steps = steps, c.train.optimizer.ema = strategy == "all-reduce" ? 0.9 : 0;
      if (strategy != "all-reduce") c.strategy = strategy_preset(strategy == "sharded" ? "all-reduce" : strategy);
      c.strategy.sharded_optimizer = strategy == "sharded", c.strategy.bucket_mib = 0.02;
      if (strategy == "model-average") c.strategy.periodic.interval = 7;
      return run(c, 4);
    };
    const std::string name = fmt::format("{}-{}", strategy, shards);
    ASSERT_EQ(with("whole-" + name, 20), 0);
    ASSERT_EQ(with("parts-" + name, 10), 0);
    ASSERT_EQ(with("parts-" + name, 20), 0);
    EXPECT_EQ(hashes("parts-" + name, 20, 4), hashes("whole-" + name, 20, 4)) << name;
  }
}

TEST_F(PipelineTrainer, AnyLayoutContinuesACheckpoint) {
  struct Layout {
    int64_t stages, shards;
    int ranks;
  };
  const auto with = [&](const std::string& run_name, const Layout& l, int64_t steps, bool sharded_optimizer = false) {
    Config c = in_stages(run_name, l.stages, l.shards);
    c.train.max_steps = steps, c.strategy.sharded_optimizer = sharded_optimizer;
    return run(c, l.ranks);
  };
  const Layout one{1, 1, 1}, stages{2, 1, 4}, shards{1, 2, 4}, both{2, 2, 4}, more{4, 1, 4};
  ASSERT_EQ(with("one", one, 20), 0);
  const auto from = [&](const std::string& begun, const Layout& to, const std::string& name) {
    fs::copy(path(begun), path(name), fs::copy_options::recursive);
    ASSERT_EQ(with(name, to, 20), 0);
    EXPECT_LT(apart("one", name, 20), 2e-3) << name;
  };
  ASSERT_EQ(with("stages", stages, 10), 0);
  from("stages", one, "stages-to-one"), from("stages", more, "stages-to-more"), from("stages", shards, "stages-to-shards");
  ASSERT_EQ(with("shards", shards, 10, true), 0);  // each rank with the optimizer's state of some of the elements of its shard
  from("shards", one, "shards-to-one"), from("shards", both, "shards-to-both"), from("shards", stages, "shards-to-stages");
  ASSERT_EQ(with("whole", {1, 1, 2}, 10), 0);
  from("whole", stages, "whole-to-stages"), from("whole", both, "whole-to-both");
}

// The same number of ranks and elements, but other layers: what ranks kept for themselves would be of the wrong ones.
TEST_F(PipelineTrainer, AnotherCutDropsWhatStrategiesKept) {
  Config c = in_stages("run", 2);
  c.model.encoder_layers = 4;
  c.strategy = strategy_preset("bmuf"), c.strategy.periodic.interval = 5, c.train.optimizer.ema = 0, c.train.max_steps = 10;
  c.parallel.stages = {3, 4}, c.valid.metrics = {"cross-entropy"};
  ASSERT_EQ(run(c, 4), 0);
  fs::copy(path("run"), path("same"), fs::copy_options::recursive);
  const auto log = [&](const std::string& name) {
    std::ifstream file(path(name) + "/train.log");
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  c.train.max_steps = 20;
  Config same = c;
  same.train.output = path("same");
  ASSERT_EQ(run(same, 4), 0);
  EXPECT_THAT(log("same"), testing::Not(testing::HasSubstr("whose replicas differed")));
  c.parallel.stages = {2, 5};
  ASSERT_EQ(run(c, 4), 0);
  EXPECT_THAT(log("run"), testing::HasSubstr("whose replicas differed: all begin with its deployed model"));
}

// GNMT with its output on every stage: validated in stages or by whole models, best model and checkpoints by the names of parameters.
TEST_F(PipelineTrainer, AHybridTrainsTheModelOfOneWorkerAndAnyLayoutContinuesIt) {
  const auto with = [&](const std::string& run_name, int64_t stages, int ranks, int64_t steps, bool translated = false) {
    Config c = in_stages(run_name, stages);
    c.model = model_preset("gnmt-small");
    c.model.width = 32, c.model.attention_place = AttentionPlace::top, c.model.readout = Readout::context;
    c.parallel.hybrid = stages > 1, c.parallel.time_pieces = stages > 1 ? 3 : 0, c.train.max_steps = steps;
    c.valid.metrics = {"cross-entropy"};
    if (translated) c.valid.metrics.push_back("bleu");
    return run(c, ranks);
  };
  ASSERT_EQ(with("one", 1, 1, 20, true), 0);
  ASSERT_EQ(with("four", 4, 4, 20), 0);
  ASSERT_EQ(with("two", 2, 4, 20, true), 0);
  const std::vector<double> expected = validations("one");
  for (const std::string run_name : {"four", "two"}) {
    EXPECT_LT(apart("one", run_name, 20), 2e-3) << run_name;
    const std::vector<double> found = validations(run_name);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4) << run_name;
    const auto files = real_file_system();
    EXPECT_EQ(sha256_file(*files, path(run_name) + "/best/model.safetensors"), hash(run_name, 20, "model.safetensors")) << run_name;
  }
  std::ifstream log(path("two") + "/train.log");
  const std::string told((std::istreambuf_iterator<char>(log)), {});
  EXPECT_THAT(told, testing::HasSubstr("stage 2 of 2 (rank 1): decoder 0 to decoder 1 and a share of the output, "));

  ASSERT_EQ(with("parts", 4, 4, 10), 0);
  fs::copy(path("parts"), path("to-1"), fs::copy_options::recursive);
  fs::copy(path("parts"), path("to-2"), fs::copy_options::recursive);
  ASSERT_EQ(with("parts", 4, 4, 20), 0);
  EXPECT_EQ(hashes("parts", 20, 4), hashes("four", 20, 4));
  ASSERT_EQ(with("to-1", 1, 1, 20), 0);
  ASSERT_EQ(with("to-2", 2, 4, 20), 0);
  ASSERT_EQ(with("from-1", 1, 2, 10), 0);
  ASSERT_EQ(with("from-1", 2, 2, 20), 0);
  for (const std::string run_name : {"to-1", "to-2", "from-1"}) EXPECT_LT(apart("one", run_name, 20), 2e-3) << run_name;
}

// Replicas that differ have parts of themselves on several ranks: another layout begins with the mean of their moments all the same.
TEST_F(PipelineTrainer, OtherLayoutsBeginWithTheMeanOfTheMoments) {
  Config c = in_stages("run", 2);
  c.strategy = strategy_preset("model-average"), c.strategy.periodic.interval = 5, c.train.optimizer.ema = 0, c.train.max_steps = 10;
  ASSERT_EQ(run(c, 4), 0);
  std::map<std::string, std::vector<float>> moments[2];
  const auto files = real_file_system();
  for (int rank = 0; rank < 4; ++rank) {
    const SafetensorsFile shard(*files, path("run") + fmt::format("/checkpoints/step-00000010/rank-{}.safetensors", rank));
    for (const NamedBytes& t : shard.tensors())
      if (t.name.starts_with("replica.adam.m/")) {
        std::vector<float>& values = moments[rank / 2][t.name.substr(8)];
        values.resize(t.data.size() / 4);
        std::memcpy(values.data(), t.data.data(), t.data.size());
      }
  }
  ASSERT_EQ(moments[0].size(), moments[1].size());
  c.parallel.pipeline = 1, c.strategy = strategy_preset("all-reduce"), c.train.max_steps = 11, c.train.batch_tokens = 400;
  c.train.optimizer.beta1 = 0.999999, c.train.optimizer.learning_rate = 1e-12;  // the first moments nearly stay, and so do the weights
  ASSERT_EQ(run(c, 1), 0);
  const SafetensorsFile one(*files, path("run") + "/checkpoints/step-00000011/rank-0.safetensors");
  size_t compared = 0;
  for (const NamedBytes& t : one.tensors()) {
    if (!t.name.starts_with("adam.m/")) continue;
    std::vector<float> values(t.data.size() / 4);
    std::memcpy(values.data(), t.data.data(), t.data.size());
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], 0.5 * (moments[0].at(t.name)[i] + moments[1].at(t.name)[i]), 3e-6) << t.name << " " << i;
    ++compared;
  }
  EXPECT_EQ(compared, moments[0].size());
}

TEST_F(PipelineTrainer, WhatCannotBeDividedIsRefused) {
  const auto error = [&](const std::function<void(Config&)>& set, int ranks) {
    Config c = in_stages("refused", 2);
    set(c);
    try {
      run(c, ranks);
    } catch (const std::exception& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(error([](Config&) {}, 3),
            "parallel.pipeline 2 divides the model among 2 ranks, but 3 are not a multiple of that; start 2 or 4 ranks");
  EXPECT_EQ(
      error([](Config& c) { c.parallel.tensor = 2; }, 6),
      "parallel.pipeline 2 and parallel.tensor 2 divide the model among 4 ranks, but 6 are not a multiple of that; start 4 or 8 ranks");
  EXPECT_EQ(error([](Config& c) { c.parallel.pipeline = 9; }, 9),
            "parallel.pipeline 9 is more than the 5 units that the model can be cut into: its layers and the output; lower it");
  const auto refused = [](const std::string& text) {
    try {
      parse_config(text, "test");
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(refused("strategy:\n  name: downpour\nparallel:\n  pipeline: 2\n"), testing::HasSubstr("choose another strategy"));
  EXPECT_THAT(refused("train:\n  objective: mixed\nparallel:\n  pipeline: 2\n"), testing::HasSubstr("samples from whole models"));
  EXPECT_THAT(refused("parallel:\n  micro-batches: 4\n"), testing::HasSubstr("does nothing without stages"));
  EXPECT_EQ(error(
                [](Config& c) {
                  c.parallel.stages = {3, 3};
                },
                2),
            "parallel.stages lists 6 units, but the model has 5: its layers and the output; change the list, or leave it out");
  EXPECT_EQ(refused("parallel:\n  pipeline: 3\n  stages: [2, 3]\n"),
            "parallel.stages lists 2 stages, but parallel.pipeline is 3; give as many numbers as there are stages");
  EXPECT_EQ(refused("model:\n  preset: transformer-small\nparallel:\n  tensor: 3\n"),
            "parallel.tensor 3 does not divide model.heads, which is 4; choose a number that does");
  EXPECT_EQ(refused("strategy:\n  name: downpour\nparallel:\n  tensor: 2\n"),
            "parallel.tensor 2 divides the model, but with strategy downpour each server would send its part at a different time; choose "
            "another strategy, or set parallel.tensor to 1");
  EXPECT_EQ(refused("model:\n  preset: gnmt-small\nparallel:\n  time-pieces: 4\n"),
            "parallel.time-pieces does nothing without stages; set parallel.pipeline too, or leave it out");
  EXPECT_EQ(
      refused("model:\n  preset: transformer-base\nparallel:\n  pipeline: 2\n  time-pieces: 4\n"),
      "parallel.time-pieces is for recurrent models, and transformer-base computes all positions of a sentence at once; leave it out, "
      "or set model.preset to one of gnmt");
  EXPECT_EQ(refused("parallel:\n  hybrid: true\n"),
            "parallel.hybrid does nothing without stages; set parallel.pipeline too, or leave it out");
  EXPECT_EQ(refused("model:\n  preset: transformer-base\nparallel:\n  pipeline: 2\n  hybrid: true\n"),
            "parallel.hybrid is for recurrent models, which transformer-base is not; leave it out, or set model.preset to one of gnmt");
  EXPECT_EQ(refused("model:\n  preset: gnmt-small\nparallel:\n  pipeline: 2\n  hybrid: true\n"),
            "parallel.hybrid computes attention after the whole decoder, but model.attention-place is bottom; set it to top and "
            "model.readout to context, or leave parallel.hybrid out");
}

}  // namespace
}  // namespace starling
