// Training on connected cards: every strategy gives the bits that it has over simulated ranks, whose gradients go through the hosts.
#include <gtest/gtest.h>

#include <cmath>

#include "comm/nccl/nccl.h"
#include "sim/simulate.h"
#include "tests/cards/thread_world.h"
#include "tests/emulated/emulator.h"
#include "tests/strategies/asynchronous.h"
#include "tests/strategies/plain_worker.h"
#include "tests/strategies/variants.h"

namespace starling {
namespace {

std::shared_ptr<void> connect(Communicator& comm, Memory& memory) {
  const auto cards = STARLING_CUDA::connect_cards(comm, memory);
  EXPECT_TRUE(cards.held) << cards.report;
  return cards.held;
}

void expect_the_simulators_bits(TrainingRun run, int ranks, int steps = 3) {
  run.backend = "cuda-emulated:f32", run.steps = steps, run.sentences = 5;
  std::vector<TrainingTrace> simulated(static_cast<size_t>(ranks)), cards(static_cast<size_t>(ranks));
  Scenario scenario;
  scenario.ranks = ranks;
  simulate(scenario, [&](World& world) { simulated[static_cast<size_t>(world.comm->rank())] = train_together(run, world); });
  run.connect = connect;
  run_threads(ranks, [&](World& world) { cards[static_cast<size_t>(world.comm->rank())] = train_together(run, world); });
  for (size_t r = 0; r < cards.size(); ++r) {
    EXPECT_EQ(cards[r].losses, simulated[r].losses) << "rank " << r;
    EXPECT_EQ(cards[r].norms, simulated[r].norms) << "rank " << r;
    EXPECT_TRUE(cards[r].values == simulated[r].values) << "rank " << r;
    EXPECT_TRUE(cards[r].second == simulated[r].second) << "rank " << r;
    // Merges that are under way at the end are counted here, and not there.
    if (family_of(run.strategy) == Family::synchronous && run.parallel.ranks() == 1) {
      EXPECT_EQ(cards[r].traffic.bytes_sent, simulated[r].traffic.bytes_sent) << "rank " << r;
    }
  }
  EXPECT_FALSE(cards[0].values.empty());
}

class CardsSynchronous : public testing::TestWithParam<Variant> {};

TEST_P(CardsSynchronous, TrainsLikeSimulatedRanks) {
  TrainingRun run;
  run.strategy = GetParam().options;
  expect_the_simulators_bits(run, 2 + GetParam().extra_ranks, 2);
}
INSTANTIATE_TEST_SUITE_P(All, CardsSynchronous, testing::ValuesIn(variants()), [](const auto& info) { return info.param.name; });

TEST(CardsTraining, Bf16OnTheWire) {
  TrainingRun run;
  run.strategy.wire = Wire::bf16, run.strategy.bucket_mib = 0.004;
  for (const bool sharded : {false, true}) {
    run.strategy.sharded_optimizer = sharded;
    expect_the_simulators_bits(run, 2);
  }
}

// Whole matrices have an owner each, which gathers their gradients and hands their weights on.
TEST(CardsTraining, MuonByWholeMatrices) {
  TrainingRun run;
  run.optimizer = "muon", run.strategy.bucket_mib = 0.004;
  for (const bool sharded : {false, true}) {
    run.strategy.sharded_optimizer = sharded;
    expect_the_simulators_bits(run, 3, 2);
  }
  run.strategy.name = "parameter-server", run.strategy.sharded_optimizer = false;
  expect_the_simulators_bits(run, 3, 2);
}

TEST(CardsTraining, EightRanks) {
  TrainingRun run;
  run.strategy.bucket_mib = 0.004;
  expect_the_simulators_bits(run, 8);
}

// A worker with 24 MiB of parameters, in matrices of 4 MiB.
class LargeWorker : public PlainWorker {
 public:
  explicit LargeWorker(World& world) : PlainWorker(world, 0.1, 1, "cuda-emulated:f32") {
    for (int i = 0; i < 6; ++i) parameters().add(fmt::format("w{}", i), {1024, 1024}, {Initializer::zeros});
    allocate();
  }
};

// Every round of a bucket is a group of NCCL's calls, which takes the host tens of microseconds. Buckets of 4 MiB would need six times as
// many, and twelve times the launches for squares.
TEST(CardsTraining, FewGroupsOfCallsAnUpdate) {
  constexpr int kRanks = 2;
  emulated_cuda::run_last_blocks(1);
  const auto groups_of = [&](double mib) {
    StrategyOptions options;
    options.overlap = false, options.bucket_mib = mib;
    emulated_cuda::Calls before, after;
    run_threads(kRanks, [&](World& world) {
      LargeWorker worker(world);
      const auto cards = connect(*world.comm, worker.parameters().backend().memory());
      const auto strategy = make_strategy(options, worker.parameters(), {}, world.comm->rank(), kRanks);
      world.comm->barrier().wait();
      if (world.comm->rank() == 0) before = emulated_cuda::calls();
      world.comm->barrier().wait();
      strategy->step(worker);
      world.comm->barrier().wait();
      if (world.comm->rank() == 0) after = emulated_cuda::calls();
      world.comm->barrier().wait();
    });
    return after.groups - before.groups;
  };
  EXPECT_EQ(groups_of(0), kRanks * 2) << "one bucket";
  EXPECT_EQ(groups_of(4), kRanks * 2 * 6);
  emulated_cuda::run_last_blocks(0);
}

class CardsReplicas : public testing::TestWithParam<std::string> {};

TEST_P(CardsReplicas, TrainLikeSimulatedRanks) {
  TrainingRun run;
  StrategyOptions& o = run.strategy = strategy_preset(GetParam());
  o.bucket_mib = 0.004, o.synchronous_steps = 1, o.batch = BatchScope::global;
  if (o.compression.compressor != Compressor::none) o.compression.dense_below = 64, o.compression.keep_warmup = 0;
  if (family_of(o) == Family::periodic) o.periodic.interval = 2, o.periodic.delay = std::min<int64_t>(o.periodic.delay, 1);
  if (o.periodic.fragments > 1) o.periodic.fragments = 2;
  if (o.sparse.average_interval > 0) o.sparse.average_interval = 2;
  expect_the_simulators_bits(run, family_of(o) == Family::periodic ? 4 : 2);
}
INSTANTIATE_TEST_SUITE_P(All, CardsReplicas, testing::ValuesIn(strategy_names({Family::periodic, Family::sparse})), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Shards of layers are summed between cards, and activations go from stage to stage.
TEST(CardsModelParallel, ShardsAndStages) {
  TrainingRun run;
  run.strategy.bucket_mib = 0.004;
  run.parallel.tensor = 2;
  expect_the_simulators_bits(run, 4);
  run.parallel.tensor = 1, run.parallel.pipeline = 2;
  expect_the_simulators_bits(run, 4);
  run.parallel.tensor = 2;
  expect_the_simulators_bits(run, 8);
}

TEST(CardsModelParallel, PiecesOfTimeAndTheOutputOnEveryStage) {
  TrainingRun run;
  run.model = "gnmt-small", run.layers = 2, run.tied = "none", run.attention_place = AttentionPlace::top;
  run.strategy.bucket_mib = 0.004, run.parallel.pipeline = 3, run.parallel.time_pieces = 2, run.parallel.hybrid = true;
  expect_the_simulators_bits(run, 3, 2);
}

// Servers that answer in the order of what comes: their messages go through the hosts.
TEST(CardsAsynchronous, Downpour) {
  AsynchronousRun run;
  run.backend = "cuda-emulated:f32", run.max_steps = 12, run.sentences = 6, run.connect = connect;
  std::vector<AsynchronousTrace> traces(3);
  run_threads(3, [&](World& world) { traces[static_cast<size_t>(world.comm->rank())] = train_apart(run, world); });
  EXPECT_TRUE(std::isfinite(traces[0].loss_after));
  EXPECT_LT(traces[0].loss_after, traces[0].loss_before);
}

}  // namespace
}  // namespace starling
