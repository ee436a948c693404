// The same training over MPI and in the simulator: parameters and optimizer state equal bit for bit; and N workers against one.
#include "tests/strategies/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "sim/simulate.h"
#include "tests/mpi/fixture.h"
#include "tests/strategies/asynchronous.h"
#include "tests/strategies/variants.h"

namespace starling {
namespace {

// The synchronous strategies of so many ranks, ring first, and with other numbers on the wire.
std::vector<std::pair<std::string, StrategyOptions>> strategies(int ranks) {
  std::vector<std::pair<std::string, StrategyOptions>> all;
  for (const Variant& v : variants())
    if (v.extra_ranks < ranks) all.emplace_back(v.name, v.options);
  const auto add = [&](const char* name, const std::function<void(StrategyOptions&)>& set) {
    all.emplace_back(name, all.front().second);
    set(all.back().second);
  };
  add("dense", [](StrategyOptions& o) { o.embedding_gradients = EmbeddingGradients::dense; });
  add("bf16", [](StrategyOptions& o) { o.wire = Wire::bf16; });
  add("sharded bf16", [](StrategyOptions& o) { o.sharded_optimizer = true, o.wire = Wire::bf16; });
  add("servers bf16", [](StrategyOptions& o) { o.name = "parameter-server", o.wire = Wire::bf16; });
  for (auto& [name, options] : all) options.deadline_seconds = 60;
  return all;
}

std::vector<std::pair<std::string, StrategyOptions>> local_strategies() {
  std::vector<std::pair<std::string, StrategyOptions>> all;
  for (const std::string name : {"model-average", "bmuf", "diloco", "streaming", "sparse-loco"}) {
    StrategyOptions o = strategy_preset(name);
    o.bucket_mib = 0.004, o.algorithm = Algorithm::ring, o.deadline_seconds = 60;
    o.periodic.interval = 6, o.synchronous_steps = name == "bmuf" ? 3 : 0, o.periodic.delay = name == "streaming" ? 2 : 0;
    if (name == "streaming") o.periodic.fragments = 2;  // sent last at update 18, so that nothing is under way when bytes are counted
    if (o.compression.compressor != Compressor::none) o.compression.dense_below = 64;
    if (name == "diloco") o.wire = Wire::bf16, o.periodic.inner_state = InnerState::average;
    all.emplace_back(name, o);
  }
  for (const std::string name : {"gradient-dropping", "sparse-local", "cser"}) {
    StrategyOptions o = strategy_preset(name);
    o.bucket_mib = 0.004, o.algorithm = Algorithm::ring, o.deadline_seconds = 60;
    o.compression.dense_below = 100, o.compression.keep = 0.05, o.compression.keep_warmup = 0;
    o.synchronous_steps = 3;
    if (name != "gradient-dropping") o.sparse.average_interval = 5;
    if (name == "sparse-local") o.compression.values = SentValues::two_bit;
    all.emplace_back(name, o);
  }
  return all;
}

// What must be equal bit for bit, as bytes.
std::vector<std::pair<std::string, std::string>> facts(const TrainingTrace& trace) {
  const auto text = [](const auto& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]);
  };
  return {{"parameters", text(trace.values)},
          {"first moments", text(trace.first)},
          {"second moments", text(trace.second)},
          {"losses", text(trace.losses)},
          {"bytes sent", std::to_string(trace.traffic.bytes_sent)}};
}

// A simulation is of all ranks at once, so each strategy is simulated by one of them, which knows what became of all.
TEST(Training, IsByteIdenticalToTheSimulators) {
  World& world = test_world();
  const int rank = world.comm->rank(), size = world.comm->size();
  std::vector<std::pair<std::string, TrainingRun>> all;
  const auto add = [&](const std::string& name, const StrategyOptions& strategy, const std::function<void(TrainingRun&)>& set) {
    TrainingRun run;
    run.backend = "cpu:f32", run.steps = 20, run.strategy = strategy;
    set(run);
    all.emplace_back(name, run);
  };
  for (const auto& [name, strategy] : strategies(size)) add(name, strategy, [](TrainingRun&) {});
  for (const auto& [name, strategy] : strategies(size))
    if (name.ends_with("bf16") && name != "bf16") add(name + " muon", strategy, [](TrainingRun& run) { run.optimizer = "muon"; });
  for (const auto& [name, strategy] : local_strategies()) add(name, strategy, [](TrainingRun&) {});
  for (const int stages : {2, 3, 4, 5})
    for (const std::string model : {"transformer-tiny", "gnmt-small"}) {
      if (size % stages != 0) continue;
      const auto [name, strategy] = model == "gnmt-small" ? local_strategies().front() : strategies(size).front();
      add(fmt::format("{} of {} in {} stages", name, model, stages), strategy,
          [&](TrainingRun& run) { run.model = model, run.layers = 2, run.parallel.pipeline = stages; });
      if (model == "gnmt-small")
        add(fmt::format("{} of {} in {} stages and pieces of time", name, model, stages), strategy,
            [&](TrainingRun& run) { run.model = model, run.layers = 2, run.parallel.pipeline = stages, run.parallel.time_pieces = 3; });
    }
  for (const auto& [stages, shards] : {std::pair(1, 2), {2, 2}, {1, 4}})
    for (const std::string model : {"transformer-tiny", "gnmt-small"}) {
      if (size % (stages * shards) != 0) continue;
      const auto [name, strategy] = strategies(size).front();
      add(fmt::format("{} of {} in {} stages of {} shards", name, model, stages, shards), strategy, [&](TrainingRun& run) {
        run.model = model, run.layers = 2, run.heads = 4, run.parallel.pipeline = stages, run.parallel.tensor = shards;
      });
    }
  for (const int stages : {2, 4})
    if (size % stages == 0)
      add(fmt::format("gnmt with its output on {} stages", stages), strategies(size).front().second, [&](TrainingRun& run) {
        run.model = "gnmt-small", run.layers = 2, run.tied = "none", run.attention_place = AttentionPlace::top;
        run.parallel.pipeline = stages, run.parallel.time_pieces = 3, run.parallel.hybrid = true;
      });
  struct Trained {
    std::string name;
    TrainingRun run;
    std::vector<std::vector<std::string>> facts;  // by kind and rank
  };
  std::vector<Trained> own;
  for (size_t k = 0; k < all.size(); ++k) {
    Trained trained{all[k].first, all[k].second, {}};
    for (const auto& fact : facts(train_together(trained.run, world))) trained.facts.push_back(gather_texts(*world.comm, fact.second));
    if (static_cast<int>(k) % size == rank) own.push_back(std::move(trained));
  }
  for (const Trained& trained : own) {
    std::vector<TrainingTrace> simulated(static_cast<size_t>(size));
    Scenario scenario;
    scenario.ranks = size, scenario.threads = 1;
    simulate(scenario, [&](World& w) { simulated[static_cast<size_t>(w.comm->rank())] = train_together(trained.run, w); });
    for (size_t r = 0; r < simulated.size(); ++r) {
      const auto expected = facts(simulated[r]);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(trained.facts[i][r] == expected[i].second)
            << trained.name << ": " << expected[i].first << " of rank " << r << " of " << size;
    }
  }
  world.comm->barrier().wait();
}

TEST(Training, LosesNothingAgainstOneWorker) {
  World& world = test_world();
  TrainingRun run;
  run.steps = 7;  // beyond the warm-up
  std::string bytes;
  if (world.comm->rank() == 0) {
    World local = make_local_world();
    bytes = facts(train_together(run, local))[3].second;
  }
  bytes = broadcast_text(*world.comm, bytes);
  std::vector<double> one(static_cast<size_t>(run.steps));
  ASSERT_EQ(bytes.size(), one.size() * sizeof one[0]);
  std::memcpy(one.data(), bytes.data(), bytes.size());
  for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::library})
    for (auto [name, options] : strategies(world.comm->size())) {
      if (name == "bf16") continue;                                // sums in double go as they are
      if (name == "tree" || name == "halving_doubling") continue;  // would be ring again
      options.algorithm = algorithm;
      run.strategy = options;
      const TrainingTrace trace = train_together(run, world);
      ASSERT_EQ(trace.losses.size(), one.size());
      for (size_t i = 0; i < one.size(); ++i)
        EXPECT_LT(std::abs(trace.losses[i] / one[i] - 1), 1e-9) << name << ", " << static_cast<int>(algorithm) << ", step " << i;
    }
}

// For real, and so never twice the same: the loss falls, every update is counted once, and the lateness is that of the other workers.
TEST(Training, AsynchronousWorkersLearn) {
  World& world = test_world();
  const int workers = world.comm->size() - 1;
  for (const int64_t sum : {1, 2}) {
    AsynchronousRun run;
    run.backend = "cpu:f32", run.rate = 1e-2, run.max_steps = 40, run.strategy.deadline_seconds = 60;
    run.strategy.asynchronous.sum_pushes = sum, run.strategy.overlap = sum == 2;
    const AsynchronousTrace trace = train_apart(run, world);
    EXPECT_TRUE(trace.finished);
    const Tensor updates({1}, DType::f64);
    updates.data<double>()[0] = world.comm->rank() < workers ? static_cast<double>(trace.updates) : 0;
    world.comm->all_reduce(updates).wait();
    if (world.comm->rank() != 0) continue;
    EXPECT_LT(trace.loss_after, trace.loss_before - 0.2);
    EXPECT_EQ(trace.figures.at("updates"), updates.data<double>()[0]);
    EXPECT_EQ(trace.figures.at("pushes"), updates.data<double>()[0]);
    EXPECT_GE(updates.data<double>()[0], 40 * workers);
    EXPECT_LE(updates.data<double>()[0], 42 * workers);
    if (workers == 1) {
      EXPECT_EQ(trace.figures.at("staleness-largest"), sum - 1);
    }
    EXPECT_EQ(trace.figures.at("server-steps"), std::floor(updates.data<double>()[0] / static_cast<double>(sum)));
  }
}

// They would fetch again after a thousand updates.
TEST(Training, AsynchronousWorkersHearOfTheEndByTheirPushes) {
  World& world = test_world();
  AsynchronousRun run;
  run.backend = "cpu:f32", run.max_steps = 20, run.strategy.deadline_seconds = 60, run.strategy.asynchronous.fetch_interval = 1000;
  const AsynchronousTrace trace = train_apart(run, world);
  EXPECT_TRUE(trace.finished);
  if (world.comm->rank() == 0) {
    EXPECT_LE(trace.figures.at("updates"), 100 * (world.comm->size() - 1));
  }
}

TEST(Training, AsynchronousWorkersInStepAreSynchronous) {
  World& world = test_world();
  AsynchronousRun run;
  World local = make_local_world();
  run.strategy = {};
  const AsynchronousTrace one = train_apart(run, local);
  run.strategy = strategy_preset("downpour");
  run.strategy.asynchronous.sum_pushes = 0, run.strategy.asynchronous.wait_for_step = true, run.strategy.deadline_seconds = 60;
  const AsynchronousTrace trace = train_apart(run, world);
  if (world.comm->rank() != 0) return;
  ASSERT_EQ(trace.told.size(), one.told.size());
  for (size_t i = 0; i < one.told.size(); ++i) EXPECT_LT(std::abs(trace.told[i] / one.told[i] - 1), 1e-9) << "update " << i;
}

}  // namespace
}  // namespace starling
