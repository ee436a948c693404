// A replay without computing has the times of the real run, to the nanosecond; so it may stand for the run on any network.
#include "experiments/times.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files.h"
#include "run/run_vocabulary.h"
#include "tests/experiments/fixture.h"

namespace starling {
namespace {

class TimesTest : public RaceTest {
 protected:
  // Of a run in the directory "run", as a race would have it.
  Config config(const std::vector<Override>& more) const {
    std::vector<Override> keys{{"strategy.batch", "per-worker"},
                               {"train.output", path("run")},
                               {"valid.metrics", "cross-entropy"},
                               {"train.threads", "1"},
                               {"log.progress", "never"}};
    keys.insert(keys.end(), more.begin(), more.end());
    Config config = load_config(path("train.yml"), keys);
    config.train.micro_batch_tokens = 4096;
    return config;
  }
};

constexpr const char* kGnmt = "preset: gnmt-small, width: 16, encoder-layers: 2, decoder-layers: 2, dropout: 0.1";

struct Case {
  std::string name;
  int workers;
  std::vector<Override> keys;
  int64_t valid_every;  // 1000: only at the end
  double jitter = 0;
  bool gnmt = false;
};

class RealAndReplayed : public TimesTest, public testing::WithParamInterface<Case> {};

TEST_P(RealAndReplayed, AreEqualToTheNanosecond) {
  const Case& c = GetParam();
  if (c.gnmt) write_training(kGnmt);
  std::vector<Override> keys{
      {"train.max-steps", "12"}, {"valid.every", std::to_string(c.valid_every)}, {"log.every", "5"}, {"strategy.bucket-mib", "0.01"}};
  keys.insert(keys.end(), c.keys.begin(), c.keys.end());
  Config config = this->config(keys);

  Scenario scenario;
  scenario.compute = {1, 2, 3, 5, 5};
  scenario.network.preset = "1gbe", scenario.jitter = c.jitter;
  if (c.jitter > 0) scenario.stragglers = {{.rank = c.workers - 1, .factor = 2.5}};
  const auto files = real_file_system();
  const Vocabularies vocabularies = open_vocabularies(config, *files, [](const std::string&) {});
  scenario.ranks = ranks_for_workers(config, vocabularies.sizes(), c.workers).count;
  TimesRecorder recorder(scenario.ranks, c.workers, false);
  simulate(scenario, [&](World& world) {
    TrainingWatch watch = recorder.watch(world);
    watch.silent = true;
    run_training(config, world, watch);
  });
  const RaceTimes real = recorder.times();

  const TokenStore store = TokenStore::open(*files, join_path(config.train.output, "data"));
  const RaceTimes replayed = replay_times(config, scenario, store, vocabularies, c.workers, 12);
  ASSERT_EQ(real.ranks.size(), replayed.ranks.size());
  for (size_t r = 0; r < real.ranks.size(); ++r) {
    EXPECT_EQ(real.ranks[r].ns, replayed.ranks[r].ns) << "rank " << r;
    EXPECT_EQ(real.ranks[r].tokens, replayed.ranks[r].tokens) << "rank " << r;
    EXPECT_EQ(real.ranks[r].bytes, replayed.ranks[r].bytes) << "rank " << r;
  }
  EXPECT_EQ(replayed.steps(), 12);
  EXPECT_GT(replayed.at(12).ns, 12 * 1000);
  EXPECT_EQ(replayed.at(12).bytes > 0, c.workers > 1);
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, RealAndReplayed,
    testing::Values(
        Case{"one", 1, {}, 1000}, Case{"untied", 3, {{"model.tied-embeddings", "none"}}, 1000}, Case{"gnmt", 3, {}, 4, 0.1, true},
        Case{"gnmt_dense", 2, {{"strategy.embedding-gradients", "dense"}}, 1000, 0, true}, Case{"ring", 3, {}, 1000},
        Case{"ring_validating", 3, {}, 4}, Case{"ring_unequal", 3, {}, 4, 0.2}, Case{"bf16", 2, {{"strategy.wire", "bf16"}}, 1000},
        Case{"blocking", 2, {{"strategy.overlap", "false"}, {"strategy.algorithm", "tree"}}, 1000},
        Case{"sharded", 3, {{"strategy.sharded-optimizer", "true"}}, 1000, 0.1},
        Case{"sharded_muon",
             3,
             {{"strategy.sharded-optimizer", "true"}, {"strategy.wire", "bf16"}, {"train.optimizer", "muon"}, {"checkpoint.every", "5"}},
             4,
             0.1},
        Case{"sharded_average", 3, {{"strategy.sharded-optimizer", "true"}, {"train.ema", "0.9"}}, 4, 0.1},
        Case{"servers", 3, {{"strategy.name", "parameter-server"}, {"strategy.servers", "2"}}, 1000, 0.1},
        Case{"shared_servers", 3, {{"strategy.name", "parameter-server"}}, 1000, 0.1},
        Case{"growing", 3, {{"train.max-steps", "0"}, {"train.max-tokens", "14400"}, {"train.batch-doubles-at", "0.25,0.5"}}, 4, 0.1},
        Case{"global_batch", 3, {{"strategy.batch", "global"}}, 1000},
        Case{"dropping", 3, {{"strategy.name", "gradient-dropping"}, {"strategy.compression.keep-warmup", "5"}}, 1000, 0.1},
        Case{"sparse_local",
             3,
             {{"strategy.name", "sparse-local"}, {"strategy.synchronous-steps", "2"}, {"strategy.sparse.average-interval", "4"}},
             5,
             0.1},
        Case{
            "cser", 2, {{"strategy.name", "cser"}, {"strategy.synchronous-steps", "1"}, {"strategy.sparse.average-interval", "3"}}, 4, 0.1},
        Case{"averaging", 3, {{"strategy.name", "model-average"}, {"strategy.periodic.interval", "3"}}, 4, 0.2},
        Case{"averaged_moments",
             2,
             {{"strategy.name", "diloco"}, {"strategy.periodic.interval", "4"}, {"strategy.periodic.inner-state", "average"}},
             1000,
             0.1},
        Case{"streaming",
             3,
             {{"strategy.name", "streaming"},
              {"strategy.periodic.interval", "4"},
              {"strategy.periodic.fragments", "2"},
              {"strategy.periodic.delay", "2"},
              {"log.every", "1000"},
              {"checkpoint.every", "1000"}},  // a pause would end an exchange that is under way
             1000,
             0.1}),
    [](const auto& info) { return info.param.name; });

// An output table of its own is complete before the backward pass begins: its exchange is hidden behind all of that pass.
TEST_F(TimesTest, OverlapHidesTheExchangeOfUntiedTables) {
  const auto waited_and_computed = [&](const std::string& overlap, const std::string& tied) {
    write_training(kGnmt);
    const Config config = this->config({{"train.max-steps", "3"},
                                        {"train.output", path("run-" + overlap + tied)},
                                        {"valid.every", "1000"},
                                        {"model.tied-embeddings", tied},
                                        {"strategy.bucket-mib", "0.01"},
                                        {"strategy.overlap", overlap}});
    Scenario scenario;
    scenario.compute = {0.05, 0.05, 3, 5, 5};
    scenario.network.preset = "1gbe", scenario.ranks = 2;
    TrainingWatch watch;
    watch.silent = true;
    const auto result = simulate(scenario, [&](World& world) { run_training(config, world, watch); });
    return std::pair(result.ranks[0].waited_ns, result.ranks[0].computed_ns);
  };
  const auto [waited, computed] = waited_and_computed("true", "none");
  const auto [blocking, computed_blocking] = waited_and_computed("false", "none");
  EXPECT_EQ(computed, computed_blocking);
  EXPECT_LT(waited, blocking);
  // The operations are those of a tied table, but for the rows' own.
  const auto tied = waited_and_computed("true", "decoder");
  EXPECT_NEAR(static_cast<double>(computed), static_cast<double>(tied.second), 0.02 * static_cast<double>(tied.second));
}

// A run of `steps` updates in the directory "run", or the rest of it.
RaceTimes trained(Config config, const Scenario& scenario, int64_t steps, int64_t from, const std::string& path) {
  config.train.max_steps = steps;
  TimesRecorder recorder(scenario.ranks, scenario.ranks, false, path);
  recorder.continue_from(from);
  simulate(scenario, [&](World& world) {
    TrainingWatch watch = recorder.watch(world);
    watch.silent = true;
    run_training(config, world, watch);
  });
  recorder.keep();
  return recorder.times();
}

TEST_F(TimesTest, AContinuedRunHasTheTimesOfAnUninterruptedOne) {
  const Config config = this->config({{"valid.every", "1000"}, {"strategy.name", "model-average"}, {"strategy.periodic.interval", "4"}});
  Scenario scenario;
  scenario.compute = {1, 2, 3, 5, 5};
  scenario.network.preset = "1gbe", scenario.ranks = 3, scenario.stragglers = {{.rank = 1, .factor = 2.5}};
  trained(config, scenario, 6, 0, path("times.json"));
  const RaceTimes all = trained(config, scenario, 12, 6, path("times.json"));
  const auto files = real_file_system();
  const Vocabularies vocabularies = open_vocabularies(config, *files, [](const std::string&) {});
  const TokenStore store = TokenStore::open(*files, join_path(config.train.output, "data"));
  const RaceTimes expected = replay_times(config, scenario, store, vocabularies, 3, 12);
  ASSERT_NE(expected.ranks[0].ns[5], expected.ranks[1].ns[5]) << "the ranks are to be apart where the run is continued";
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(all.ranks[r].ns, expected.ranks[r].ns) << "rank " << r;
    EXPECT_EQ(all.ranks[r].tokens, expected.ranks[r].tokens) << "rank " << r;
    EXPECT_EQ(all.ranks[r].bytes, expected.ranks[r].bytes) << "rank " << r;
  }
}

// What a replay of the first updates is charged does not depend on where it ends: a run waits for parameters where reports and checkpoints
// are due, and their distances are those of the whole run.
TEST_F(TimesTest, AReplayOfABeginningHasTheTimesOfTheWhole) {
  const Config config = this->config({{"train.max-steps", "100"}, {"strategy.sharded-optimizer", "true"}, {"strategy.bucket-mib", "0.01"}});
  Scenario scenario;
  scenario.compute = {1, 2, 3, 5, 5};
  scenario.network.preset = "1gbe", scenario.ranks = 3, scenario.jitter = 0.1;
  const auto files = real_file_system();
  const Vocabularies vocabularies = open_vocabularies(config, *files, [](const std::string&) {});
  trained(config, scenario, 1, 0, "");
  const TokenStore store = TokenStore::open(*files, join_path(config.train.output, "data"));
  const RaceTimes whole = replay_times(config, scenario, store, vocabularies, 3, 100);
  const RaceTimes beginning = replay_times(config, scenario, store, vocabularies, 3, 9);
  // The last of a replay waits for its parameters, so it is left out.
  for (size_t r = 0; r < 3; ++r)
    for (size_t step = 0; step + 1 < 9; ++step) EXPECT_EQ(beginning.ranks[r].ns[step], whole.ranks[r].ns[step]) << r << " " << step;
}

TEST_F(TimesTest, AContinuedRunKeepsWhatFasterRanksHadDone) {
  const std::string ranks = R"({"ranks": [{"ns": [10, 20, 30], "tokens": [5, 11, 15], "bytes": [100, 200, 300]},)"
                            R"({"ns": [4, 9, 14, 19, 24, 29], "tokens": [1, 2, 3, 4, 5, 6], "bytes": [10, 20, 30, 40, 50, 60]}])";
  const auto continued = [&](const std::string& rest) {
    write("times.json", ranks + rest);
    TimesRecorder recorder(2, 2, true, path("times.json"));
    recorder.continue_from(2);
    Scenario scenario;
    simulate(scenario, [&](World& world) {
      const TrainingWatch watch = recorder.watch(world);
      watch.resumed(true);
      if (world.comm->rank() == 0) return watch.updated(3, 7, 0);
      world.clock->sleep_until(world.clock->now_ns() + 3);
      watch.updated(3, 8, 0);
    });
    return recorder.times();
  };
  RaceTimes times = continued("}");
  EXPECT_EQ(times.ranks[0].ns, (std::vector<int64_t>{10, 20, 20})) << "goes on where rank 0 was";
  EXPECT_EQ(times.ranks[0].tokens, (std::vector<int64_t>{5, 11, 18}));
  EXPECT_EQ(times.ranks[1].ns, (std::vector<int64_t>{4, 9, 14, 19, 23}));
  EXPECT_EQ(times.ranks[1].tokens, (std::vector<int64_t>{1, 2, 3, 4, 12})) << "the four updates by then count, the two later ones do not";
  EXPECT_EQ(times.ranks[1].bytes.back(), 40);
  times = continued(R"(, "pauses": [[1, 11], [2, 25], [3, 33]]})");
  EXPECT_EQ(times.ranks[0].ns, (std::vector<int64_t>{10, 20, 25})) << "it paused to save a little later";
  EXPECT_EQ(times.ranks[1].tokens, (std::vector<int64_t>{1, 2, 3, 4, 5, 13}));
  EXPECT_THROW(TimesRecorder(2, 2, true, path("times.json")).continue_from(4), DataError);
}

// On a network where a fetch takes longer than an update, so that one is under way at each validation and checkpoint.
TEST_F(TimesTest, ValidationsAndCheckpointsDoNotCountAsBytes) {
  const Config config =
      this->config({{"train.max-steps", "8"}, {"valid.every", "1"}, {"checkpoint.every", "3"}, {"strategy.name", "downpour"}});
  const auto files = real_file_system();
  const Vocabularies vocabularies = open_vocabularies(config, *files, [](const std::string&) {});
  Scenario scenario;
  scenario.compute = {10, 20, 30, 50, 5};
  scenario.network.preset = "1gbe", scenario.ranks = ranks_for_workers(config, vocabularies.sizes(), 2).count;
  TimesRecorder recorder(scenario.ranks, 2, true);
  simulate(scenario, [&](World& world) {
    TrainingWatch watch = recorder.watch(world);
    watch.silent = true;
    run_training(config, world, watch);
  });
  // Each update fetches the parameters and pushes a gradient, with less than a KiB of numbers; the next fetch may have come already.
  const double one = static_cast<double>(gradient_bytes(config, vocabularies.sizes()));
  for (int r = 0; r < 2; ++r) {
    const RankTimes rank = recorder.times().ranks[static_cast<size_t>(r)];
    ASSERT_GE(rank.bytes.size(), 4u);
    for (size_t i = 0; i < rank.bytes.size(); ++i) {
      const double updates = static_cast<double>(i) + 1, bytes = static_cast<double>(rank.bytes[i]);
      EXPECT_GE(bytes, 2 * updates * one) << "rank " << r << ", update " << updates;
      EXPECT_LE(bytes, (2 * updates + 1) * one + 1024 * (updates + 1)) << "rank " << r << ", update " << updates;
    }
  }
}

TEST_F(TimesTest, ServersComeOnTopOfTheWorkers) {
  Config config = load_config(path("train.yml"), {{"strategy.name", "parameter-server"}, {"strategy.servers", "3"}});
  EXPECT_EQ(ranks_for_workers(config, {100, 100}, 4).count, 7);
  config.strategy.server_placement = ServerPlacement::shared;
  EXPECT_EQ(ranks_for_workers(config, {100, 100}, 4).count, 4);
  config.strategy = {};
  EXPECT_EQ(ranks_for_workers(config, {100, 100}, 4).count, 4);
}

TEST_F(TimesTest, TheBandwidthFollowsFromR) {
  RaceNetwork network{.name = "n", .r = 1.5};
  network.link.latency_us = 20, network.link.message_us = 5;
  const double step = 0.1, bytes = 4e6;
  for (const int workers : {2, 4, 16}) {
    const NetworkModel model = race_network(network, {}, workers, static_cast<int64_t>(bytes), step);
    // 2 (N-1) rounds of a message of M/N bytes.
    const double round = 25e-6 + bytes / workers * 8 / (model.inter.bandwidth_gbit_s * 1e9);
    EXPECT_NEAR(2 * (workers - 1) * round / step, 1.5, 1e-9);
  }
  EXPECT_EQ(race_network(network, {}, 1, 4000000, step).inter.bandwidth_gbit_s, -1) << "one worker has no network";
  EXPECT_THROW(race_network(network, {}, 16, 4000000, 1e-4), ConfigError) << "latencies alone take longer";
}

TEST_F(TimesTest, TimesOfRanksThatGoTheirOwnWays) {
  RaceTimes times;
  times.workers = 2, times.asynchronous = true;
  times.ranks = {{{10, 20, 30}, {5, 11, 15}, {100, 200, 300}}, {{15, 31}, {7, 9}, {50, 70}}};
  EXPECT_EQ(times.steps(), 3);
  EXPECT_EQ(times.at(2).ns, 20);
  EXPECT_EQ(times.at(2).tokens, 11 + 7) << "rank 1 has done one update by then";
  EXPECT_EQ(times.at(2).bytes, (200 + 50) / 2);
  EXPECT_EQ(times.at(3).ns, 31) << "after rank 0's last update everything counts";
  EXPECT_EQ(times.at(3).tokens, 15 + 9);
  times.asynchronous = false;
  EXPECT_EQ(times.steps(), 2);
  EXPECT_EQ(times.at(2).ns, 31) << "the last one's";
  EXPECT_EQ(times.at(2).tokens, 20);
}

}  // namespace
}  // namespace starling
