// The whole trainer on several (simulated) ranks: the same result whatever the strategy, exact resumption, and a checkpoint that any other
// number of ranks continues.
#include <csignal>
#include <numeric>

#include "base/random.h"
#include "tests/strategies/distributed_run.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

TEST_F(DistributedTrainer, EveryStrategyTrainsTheModelOfOneWorker) {
  EXPECT_EQ(run_training(config("one")), 0);
  const std::vector<float> one = weights("one", 20);
  const std::vector<std::pair<std::string, std::function<void(StrategyOptions&)>>> strategies = {
      {"ring", [](StrategyOptions& o) { o.algorithm = Algorithm::ring; }},
      {"sharded", [](StrategyOptions& o) { o.sharded_optimizer = true; }},
      {"servers", [](StrategyOptions& o) { o.name = "parameter-server"; }},
      {"server", [](StrategyOptions& o) { o.name = "parameter-server", o.servers = 1; }}};
  for (const auto& [name, set] : strategies) {
    Config c = config(name);
    set(c.strategy);
    EXPECT_EQ(run(c, 3), 0) << name;
    EXPECT_LT(distance(weights(name, 20), one), 1e-3) << name;
    // The optimizer's state is whole in the checkpoint, each element in the shard of who kept it.
    const std::vector<float> ones = saved("one", 20, 0, "adam.v");
    const double expected = std::accumulate(ones.begin(), ones.end(), 0.0);
    double sum = 0;
    size_t elements = 0;
    for (int r = 0; r < 3; ++r) {
      if (!fs::exists(path(name) + fmt::format("/checkpoints/step-00000020/rank-{}.safetensors", r))) continue;
      const std::vector<float> own = saved(name, 20, r, "adam.v");
      EXPECT_TRUE(own.size() < ones.size() / 2 || name == "ring" || name == "server") << name << " rank " << r;
      sum += std::accumulate(own.begin(), own.end(), 0.0), elements += own.size();
    }
    EXPECT_EQ(elements, ones.size()) << name;
    EXPECT_NEAR(sum / expected, 1, 1e-2) << name;
  }
}

TEST_F(DistributedTrainer, AContinuedRunEqualsAnUninterruptedOneBitForBit) {
  for (const std::string& strategy :
       of_cases<std::string>({"all-reduce", "sharded late bf16 muon", "parameter-server", "shared-server", "sharded", "muon",
                              "sharded muon", "parameter-server muon", "sharded late", "parameter-server late bf16 muon"},
                             4)) {
    const auto with = [&](const std::string& run, int64_t steps) {
      Config c = config(strategy + run);
      c.train.max_steps = steps;
      if (strategy.ends_with("muon")) c.train.optimizer.optimizer = OptimizerKind::muon, c.train.optimizer.weight_decay = 0.01;
      if (strategy.starts_with("sharded")) c.strategy.sharded_optimizer = true;
      if (strategy == "parameter-server") c.strategy.name = strategy, c.strategy.servers = 1;
      if (strategy.starts_with("parameter-server") && strategy.ends_with("muon")) c.strategy.name = "parameter-server";
      if (strategy.find("late") != std::string::npos) c.train.optimizer.ema = 0;  // with an average all is waited for at each update
      if (strategy.find("bf16") != std::string::npos) c.strategy.wire = Wire::bf16;
      if (strategy == "shared-server")  // all state on one rank that computes too, in one bucket
        c.strategy.name = "parameter-server", c.strategy.servers = 1, c.strategy.server_placement = ServerPlacement::shared,
        c.strategy.bucket_mib = 64;
      return c;
    };
    run(with("whole", 20), 3);
    for (const int64_t stop : {7, 13, 20}) run(with("parts", stop), 3);
    EXPECT_EQ(hashes(strategy + "parts", 20, 3), hashes(strategy + "whole", 20, 3)) << strategy;
  }
}

// All ranks see the same noise, those that only serve too, and grow together; interrupted they go on with what they had measured.
TEST_F(DistributedTrainer, BatchesThatFollowTheNoiseGrowOnAllRanksAndContinueBitForBit) {
  write_unrelated(path("c"), path("d"), 400);
  for (const std::string& strategy : of_cases<std::string>({"sharded", "all-reduce", "parameter-server"}, 1)) {
    const auto with = [&](const std::string& run) {
      Config c = config(strategy + run);
      c.train.max_steps = 0, c.train.batch_tokens = 8, c.train.max_tokens = 200 * 8, c.train.batch_follows_noise = 32;
      c.train.optimizer.learning_rate = 1e-2;
      c.data.train = {{path("c"), path("d"), "", 1}};
      c.train.beta2_tokens = 3000, c.strategy.check_every = 1, c.valid.every = c.checkpoint.every = 50;
      c.strategy.sharded_optimizer = strategy == "sharded";
      if (strategy == "parameter-server") c.strategy.name = strategy, c.strategy.servers = 1;
      return c;
    };
    EXPECT_EQ(run(with("whole"), 3), 0) << strategy;
    std::map<int64_t, int64_t> grown;  // batch by update
    int last = 0;
    std::ifstream events(path(strategy + "whole") + "/events.jsonl");
    for (std::string line; std::getline(events, line);) {
      const auto event = nlohmann::json::parse(line);
      if (event.at("type") == "batch") grown[event.at("step")] = event.at("batch_tokens");
      last = event.at("step");
    }
    ASSERT_GE(grown.size(), 1u) << strategy;
    EXPECT_LE(grown.rbegin()->second, 32);
    EXPECT_LT(last, 200);
    for (const int64_t stop : {grown.begin()->first - 5, grown.begin()->first + 1}) {
      Scenario scenario;
      scenario.ranks = 3;
      simulate(scenario, [&](World& world) {
        TrainingWatch watch;
        watch.updated = [&](int64_t step, int64_t, int64_t) {
          if (step == stop && world.comm->rank() == 0) std::raise(SIGTERM);
        };
        EXPECT_EQ(run_training(with("parts"), world, watch), 128 + SIGTERM);
      });
    }
    EXPECT_EQ(run(with("parts"), 3), 0) << strategy;
    EXPECT_EQ(hashes(strategy + "parts", last, 3), hashes(strategy + "whole", last, 3)) << strategy;
  }
}

TEST_F(DistributedTrainer, ReplicasThatDifferContinueBitForBit) {
  for (const std::string& strategy :
       of_cases<std::string>({"streaming", "sparse-local", "model-average", "bmuf", "sparse-loco", "gradient-dropping"}, 2)) {
    const auto with = [&](const std::string& run, int64_t steps) {
      Config c = config(strategy + run);
      c.train.max_steps = steps, c.train.optimizer.ema = 0;
      c.strategy = strategy_preset(strategy);
      c.strategy.batch = BatchScope::global;
      if (family_of(c.strategy) == Family::periodic) {
        c.strategy.periodic.interval = 6, c.strategy.synchronous_steps = strategy == "bmuf" ? 4 : 0;
        c.strategy.periodic.delay = strategy == "streaming" ? 3 : 0;
      }
      if (c.strategy.compression.compressor != Compressor::none)
        c.strategy.compression.dense_below = 64, c.strategy.compression.keep_warmup = 0;
      if (c.strategy.compression.compressor == Compressor::top_k) c.strategy.compression.keep = 0.05;
      if (strategy == "sparse-local") c.strategy.sparse.average_interval = 5;
      return c;
    };
    run(with("whole", 20), 3);
    for (const int64_t stop : {3, 7, 13, 20}) run(with("parts", stop), 3);
    EXPECT_EQ(hashes(strategy + "parts", 20, 3), hashes(strategy + "whole", 20, 3)) << strategy;
    // From a checkpoint on the way, too: its deployed model is not the final one, and what is under way goes on.
    fs::remove_all(path(strategy + "parts") + "/checkpoints/step-00000020");
    run(with("parts", 20), 3);
    EXPECT_EQ(hashes(strategy + "parts", 20, 3), hashes(strategy + "whole", 20, 3)) << strategy << " after update 13";
    fs::remove_all(path(strategy + "whole") + "/checkpoints/step-00000020");
    const std::string expected = hash(strategy + "parts", 20, "model.safetensors");
    run(with("whole", 20), 3);
    EXPECT_EQ(hash(strategy + "whole", 20, "model.safetensors"), expected) << strategy << " after update 10, a checkpoint on the way";
    // Another number of ranks, or one worker by itself, goes on from the deployed model.
    EXPECT_EQ(run(with("parts", 26), 2), 0);
    Config alone = with("parts", 30);
    alone.strategy = {};
    EXPECT_EQ(run_training(alone), 0);
  }
}

TEST_F(DistributedTrainer, MoreWorkersOfTheSameBatchContinueReplicasThatDiffer) {
  Config c = config("more");
  c.train.max_steps = 9, c.train.optimizer.ema = 0, c.train.batch_tokens = 60;
  c.strategy = strategy_preset("bmuf");
  c.strategy.periodic.interval = 4, c.strategy.synchronous_steps = 0;
  EXPECT_EQ(run(c, 2), 0);
  c.train.max_steps = 14;
  EXPECT_EQ(run(c, 4), 0);
  c.strategy.batch = BatchScope::global;  // 60 tokens of all workers are another batch
  EXPECT_THROW(run(c, 4), ConfigError);
}

// Four updates that change nothing, by a rate of 0 and gradients clipped to nothing, show what other ranks begin with: the deployed model,
// the mean of the moments, about the same place in the data, and nothing of what the strategy was about to do.
TEST_F(DistributedTrainer, OtherRanksBeginWithTheDeployedModelAndTheMeanOfTheMoments) {
  const auto files = real_file_system();
  for (const std::string strategy : {"bmuf", "sparse-local", "gradient-dropping"})
    for (const int ranks : {4, 1}) {
      const std::string name = strategy + std::to_string(ranks), before = name + "-before";
      Config c = config(name);
      c.train.max_steps = 9, c.train.optimizer.ema = 0, c.train.batch_tokens = 60;
      c.strategy = strategy_preset(strategy);
      c.strategy.batch = BatchScope::per_worker, c.strategy.synchronous_steps = 0;
      if (strategy == "bmuf")
        c.strategy.periodic.interval = 4, c.strategy.periodic.merge_weights = MergeWeights::equal, c.strategy.periodic.outer_momentum = 0.5;
      else
        c.strategy.compression.dense_below = 64, c.strategy.compression.keep = 0.05, c.strategy.compression.keep_warmup = 0;
      if (strategy == "sparse-local") c.strategy.sparse.average_interval = 4;
      EXPECT_EQ(run(c, 2), 0);
      fs::copy(path(name), path(before), fs::copy_options::recursive);
      c.train.max_steps = 13, c.train.optimizer.learning_rate = 0, c.train.optimizer.clip_norm = 1e-30;
      if (ranks == 1) c.strategy = {}, c.strategy.batch = BatchScope::per_worker;
      EXPECT_EQ(ranks == 1 ? run_training(c) : run(c, ranks), 0);

      const bool equal = strategy == "gradient-dropping";  // replicas, of which rank 1 then has its residual only
      const SafetensorsFile kept(*files, path(before) + "/checkpoints/step-00000009/rank-1.safetensors");
      EXPECT_EQ(kept.tensors().size() == 1, equal) << name;
      for (const auto& [tensor, beta] : {std::pair{"adam.m", c.train.optimizer.beta1}, {"adam.v", c.train.optimizer.beta2}}) {
        const auto of = [&](const std::string& run, int step, int rank, bool whole) {
          return whole ? saved(run, step, 0, tensor) : saved(run, step, rank, std::string("replica.") + tensor);
        };
        const auto first = of(before, 9, 0, equal), second = of(before, 9, 1, equal), now = of(name, 13, ranks - 1, equal || ranks == 1);
        EXPECT_EQ(first == second, equal);
        std::vector<float> mean(first.size());
        for (size_t i = 0; i < mean.size(); ++i) mean[i] = static_cast<float>((first[i] + second[i]) / 2 * std::pow(beta, 4));
        EXPECT_LT(distance(now, mean), 1e-5) << name << " " << tensor;
      }
      EXPECT_TRUE(model(name, 13) == model(before, 9)) << name;
      const std::vector<double> scores = validations(name);
      ASSERT_EQ(scores.size(), 3u);  // after updates 9, 10 and 13
      for (const double score : scores) EXPECT_NEAR(score, scores[0], 1e-6);
      const auto then = state(before, 9), now = state(name, 13);
      EXPECT_EQ(then["epoch"], 0);
      EXPECT_EQ(now["epoch"], 0);
      EXPECT_EQ(then["batch"], 9);
      EXPECT_EQ(now["batch"], 9 * 2 / ranks + 4);  // of as many tokens for each worker
    }
}

// However often the merged model is looked at, each checkpoint has that of its own update, and the last one what was not merged.
TEST_F(DistributedTrainer, LookingAtTheMergedModelChangesNoCheckpoint) {
  const auto train = [&](const std::string& name, int64_t every, int64_t steps, double rate = 3e-3, int64_t early_stopping = 0) {
    Config c = config(name);
    c.train.optimizer.ema = 0, c.train.max_steps = steps, c.valid.every = every, c.checkpoint.every = every;
    c.strategy = strategy_preset("model-average");
    c.strategy.periodic.interval = 5, c.strategy.batch = BatchScope::global;
    c.valid.metrics = {"cross-entropy"}, c.valid.early_stopping = early_stopping, c.train.optimizer.learning_rate = rate;
    EXPECT_EQ(run(c, 2), 0);
  };
  train("often", 3, 12);
  train("seldom", 6, 12);
  EXPECT_FALSE(model("often", 6) == model("often", 12));
  for (const int step : {6, 12}) EXPECT_TRUE(model("often", step) == model("seldom", step)) << step;
  train("early", 3, 100, 5, 1);  // such a rate harms: a validation after update 6, of what was merged after update 5, ends the run
  train("planned", 3, 6, 5);
  EXPECT_TRUE(model("early", 6) == model("planned", 6));
}

// A schedule that ends with the time that a run may take has the rate that rank 0's time says, on all ranks; a strategy whose workers make
// updates of their own refuses it.
TEST_F(DistributedTrainer, ASchedulesEndMayBeATime) {
  Config c = config("timed");
  c.train.optimizer.ema = 0, c.train.optimizer.schedule = RateSchedule::linear, c.train.optimizer.warmup = 2;
  c.train.max_steps = 1000000, c.train.max_minutes = 0.0005;  // virtual ones
  c.valid.source = c.valid.target = "", c.checkpoint.every = 1000000, c.log.every = 5, c.strategy.check_every = 1;
  EXPECT_EQ(run(c, 3), 0);
  std::vector<double> rates;
  std::ifstream events(path("timed") + "/events.jsonl");
  for (std::string line; std::getline(events, line);)
    if (const auto event = nlohmann::json::parse(line); event["type"] == "report") rates.push_back(event["learning_rate"].get<double>());
  ASSERT_GT(rates.size(), 4u);
  for (size_t i = 2; i < rates.size(); ++i) EXPECT_LT(rates[i], rates[i - 1]);
  EXPECT_LT(rates.back(), 0.3 * c.train.optimizer.learning_rate);
  Config apart = c;
  apart.train.output = path("apart"), apart.strategy = strategy_preset("diloco");
  try {
    run(apart, 3);
    FAIL() << "not refused";
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("train.schedule linear cannot end with train.max-minutes"), std::string::npos) << e.what();
  }
}

// A request to end is of one run: what was under way with it when the checkpoint was written does not end the run that continues.
TEST_F(DistributedTrainer, ARequestToEndIsNotContinued) {
  const auto with = [&](const std::string& run) {
    Config c = config(run);
    c.train.optimizer.ema = 0;
    c.strategy = strategy_preset("streaming");
    c.strategy.batch = BatchScope::global, c.strategy.compression.dense_below = 64;
    c.strategy.periodic.interval = 6, c.strategy.periodic.fragments = 3, c.strategy.periodic.delay = 3;
    return c;
  };
  EXPECT_EQ(run(with("whole"), 3), 0);
  const Config c = with("parts");
  int status = 0;
  Scenario scenario;
  scenario.ranks = 3;
  simulate(scenario, [&](World& world) {
    TrainingWatch watch;
    if (world.comm->rank() == 0)
      watch.updated = [](int64_t step, int64_t, int64_t) {
        if (step == 4) std::raise(SIGTERM);
      };
    const int mine = run_training(c, world, watch);
    if (world.comm->rank() == 0) status = mine;
  });
  EXPECT_EQ(status, 128 + SIGTERM);
  const auto files = real_file_system();
  EXPECT_LT(latest_checkpoint(*files, path("parts"), {})->step, 12);
  EXPECT_EQ(run(c, 3), 0);
  EXPECT_EQ(hashes("parts", 20, 3), hashes("whole", 20, 3));
}

TEST_F(DistributedTrainer, AnyNumberOfRanksContinuesACheckpoint) {
  for (const OptimizerKind optimizer : {OptimizerKind::adam, OptimizerKind::muon}) {
    const auto with = [&](const std::string& name) {
      Config c = config(fmt::format("{}-{}", name, optimizer));
      c.train.optimizer.optimizer = optimizer;
      return c;
    };
    run_training(with("one"));
    int64_t stop = 5;
    for (const int ranks : {4, 1, 2, 5}) {
      Config c = with("many");
      c.train.max_steps = stop, stop += 5;
      c.strategy.sharded_optimizer = ranks == 4 || ranks == 2;
      if (ranks == 1)
        run_training(c);
      else
        run(c, ranks);
    }
    EXPECT_LT(distance(weights(fmt::format("many-{}", optimizer), 20), weights(fmt::format("one-{}", optimizer), 20)), 1e-3)
        << word(optimizer);
  }
}

// Three workers and a server: rank 0 validates and saves what the servers have while the others go on, and everything repeats.
TEST_F(DistributedTrainer, AsynchronousRanksTrainAndRepeatInTheSimulator) {
  const auto files = real_file_system();
  std::vector<std::string> hashes;
  for (const std::string name : {"first", "second"}) {
    Config c = config(name);
    c.strategy = strategy_preset("downpour");
    c.strategy.asynchronous.sum_pushes = 2, c.strategy.overlap = true;
    c.train.max_steps = 60, c.train.batch_tokens = 100, c.valid.every = 20, c.log.every = 10;
    EXPECT_EQ(run(c, 4), 0);
    const auto last = latest_checkpoint(*files, path(name), {});
    ASSERT_TRUE(last);
    EXPECT_NEAR(static_cast<double>(last->step), 60, 6);
    hashes.push_back(sha256_file(*files, last->path("model.safetensors")) + sha256_file(*files, last->path("rank-0.safetensors")));
    const auto step = static_cast<int>(last->step);
    EXPECT_EQ(saved(name, step, 0, "adam.v").size(), saved(name, step, 0, "parameters").size());
    std::ifstream events(path(name) + "/events.jsonl");
    std::vector<double> losses, tokens, validations;
    double pushes = 0, staleness = 0;
    std::string reason;
    for (std::string line; std::getline(events, line);) {
      const auto event = nlohmann::json::parse(line);
      if (event["type"] == "report" && event["step"] > 1) losses.push_back(event["loss"]), tokens.push_back(event["target_tokens"]);
      if (event["type"] == "validation") validations.push_back(event["scores"]["cross-entropy"]);
      if (event["type"] == "strategy") pushes = event["pushes"], staleness = event["staleness-mean"];
      if (event["type"] == "stop") reason = event["reason"];
    }
    EXPECT_TRUE(reason.starts_with("complete: train.max-steps 60")) << reason;
    ASSERT_GE(losses.size(), 5u);
    EXPECT_LT(losses.back(), losses.front() - 0.3);
    EXPECT_NEAR(tokens[2], 3000, 600) << "the sums are those of all workers";
    ASSERT_GE(validations.size(), 3u);
    EXPECT_LT(validations.back(), validations.front());
    EXPECT_GE(pushes, 180);
    EXPECT_NEAR(staleness, 5, 1.5);
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

// Rank 0 is slow, so it has made fewer updates than train.max-steps when the servers say that the run is over.
TEST_F(DistributedTrainer, TheEndOfAServedRunNamesItsLimit) {
  Config c = config("slow");
  c.strategy = strategy_preset("downpour");
  c.train.max_steps = 12, c.train.batch_tokens = 100;
  Scenario scenario;
  scenario.ranks = 3;
  scenario.stragglers = {{.rank = 0, .factor = 4}};
  EXPECT_EQ(run(c, scenario), 0);
  const auto last = latest_checkpoint(*real_file_system(), path("slow"), {});
  ASSERT_TRUE(last);
  EXPECT_LT(last->step, 12);
  std::ifstream events(path("slow") + "/events.jsonl");
  std::string reason;
  for (std::string line; std::getline(events, line);)
    if (const auto event = nlohmann::json::parse(line); event["type"] == "stop") reason = event["reason"];
  EXPECT_EQ(reason, "complete: train.max-steps 12, the mean of the workers");
}

// One worker is never late, so that its run can be compared: parts of it make the whole bit for bit, whoever goes on with them.
TEST_F(DistributedTrainer, AsynchronousRunsContinue) {
  const auto with = [&](const std::string& run, int64_t steps) {
    Config c = config(run);
    c.strategy = strategy_preset("downpour");
    c.strategy.overlap = false, c.strategy.batch = BatchScope::global, c.train.max_steps = steps;
    return c;
  };
  run(with("whole", 20), 2);
  for (const int64_t stop : {7, 13, 20}) run(with("parts", stop), 2);
  EXPECT_EQ(hashes("parts", 20, 2), hashes("whole", 20, 2));
  EXPECT_EQ(run(with("whole", 20), 2), 0) << "already done";
  Config alone = with("parts", 25);
  alone.strategy = {};
  EXPECT_EQ(run_training(alone), 0);
  EXPECT_EQ(run(with("parts", 30), 4), 0);
  const auto files = real_file_system();
  const auto last = latest_checkpoint(*files, path("parts"), {});
  ASSERT_TRUE(last);
  EXPECT_GT(last->step, 25);
}

TEST_F(DistributedTrainer, AnAsynchronousRunStopsEarly) {
  Config c = config("learned");
  c.valid.metrics = {"cross-entropy"}, c.train.optimizer.ema = 0, c.train.max_steps = 20;
  EXPECT_EQ(run_training(c), 0);
  // A rate that only harms, and a model that is validated before it does.
  c.train.output = path("early"), c.train.initial_model = path("learned");
  c.strategy = strategy_preset("downpour");
  c.train.optimizer.learning_rate = 1, c.train.optimizer.warmup = 1, c.train.max_steps = 1000;
  c.valid.every = 2, c.valid.early_stopping = 2;
  EXPECT_EQ(run(c, 3), 0);
  std::ifstream log(path("early") + "/train.log");
  const std::string text((std::istreambuf_iterator<char>(log)), {});
  EXPECT_NE(text.find("early stopping: "), std::string::npos) << text;
  const auto files = real_file_system();
  EXPECT_LT(latest_checkpoint(*files, path("early"), {})->step, 12);
}

// As many ranks and the same strategy, but what each has for itself is of other fragments.
TEST_F(DistributedTrainer, OtherOptionsThanTheCheckpointsAreTold) {
  Config c = config("fragments");
  c.train.max_steps = 3, c.train.optimizer.ema = 0;
  c.strategy = strategy_preset("bmuf");
  EXPECT_EQ(run(c, 2), 0);
  c.train.max_steps = 4, c.strategy.periodic.fragments = 2;
  EXPECT_EQ(run(c, 2), 0);
  std::ifstream log(path("fragments") + "/train.log");
  const std::string text((std::istreambuf_iterator<char>(log)), {});
  EXPECT_NE(text.find("the checkpoint is of 2 ranks with strategy bmuf and other options, whose replicas differed: all begin with its"),
            std::string::npos)
      << text;
}

TEST_F(DistributedTrainer, RanksWithUnlikeConfigurationsAreTold) {
  Scenario scenario;
  scenario.ranks = 3;
  try {
    simulate(scenario, [&](World& world) {
      Config c = config("unlike");
      if (world.comm->rank() == 2) c.train.optimizer.learning_rate = 1e-4;
      run_training(c, world);
    });
    FAIL() << "no error";
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("rank 2 on node2 has a different configuration from rank 0"), std::string::npos) << e.what();
  }
}

TEST_F(DistributedTrainer, WorkersMayEachHaveTheBatch) {
  Config c = config("each");
  c.strategy.batch = BatchScope::per_worker, c.strategy.rate_scaling = RateScaling::sqrt, c.train.warmup_tokens = 4000;
  EXPECT_EQ(run(c, 4), 0);
  std::ifstream log(path("each") + "/train.log");
  const std::string text((std::istreambuf_iterator<char>(log)), {});
  EXPECT_NE(text.find("800 target tokens per update"), std::string::npos) << text;
  EXPECT_NE(text.find("learning rate 0.006 after 5 updates of warm-up"), std::string::npos) << text;
}

}  // namespace
}  // namespace starling
