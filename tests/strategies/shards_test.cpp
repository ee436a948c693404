// Models whose layers and vocabularies are in shards, against the same models whole.
#include <gtest/gtest.h>

#include "tests/strategies/divided.h"

namespace starling {
namespace {

struct Layout {
  int tensor, pipeline, replicas;
  int ranks() const { return tensor * pipeline * replicas; }
};
void PrintTo(const Layout& l, std::ostream* out) { *out << l.tensor << " shards, " << l.pipeline << " stages, " << l.replicas << " replicas"; }

class InShards : public testing::TestWithParam<std::string> {
 protected:
  static TrainingRun run() {
    TrainingRun run;
    run.model = GetParam().starts_with("gnmt") ? "gnmt-small" : "transformer-tiny";
    run.tied = GetParam().substr(GetParam().rfind('_') + 1);
    run.layers = 2, run.steps = 5, run.heads = 4;
    return run;
  }
};

TEST_P(InShards, LosesNothingAgainstOneWorker) {
  const TrainingTrace one = alone(run());
  for (const Layout& layout : {Layout{2, 1, 1}, {4, 1, 2}, {2, 2, 1}, {4, 2, 1}, {2, 3, 2}}) {
    TrainingRun divided = run();
    divided.parallel.tensor = layout.tensor, divided.parallel.pipeline = layout.pipeline;
    const auto traces = simulated(divided, layout.ranks());
    for (const TrainingTrace& trace : traces) {
      EXPECT_LT(worst(trace.losses, one.losses), 1e-9) << testing::PrintToString(layout);
      EXPECT_LT(worst(trace.norms, one.norms), 1e-9) << testing::PrintToString(layout);
      EXPECT_LT(worst(trace.parameters, part_of(one.parameters, trace)), 1e-8) << testing::PrintToString(layout);
      EXPECT_EQ(trace.tokens, one.tokens);
    }
    expect_whole(traces, layout.tensor * layout.pipeline, one);
  }
}

TEST_P(InShards, InSinglePrecisionStaysNear) {
  TrainingRun single = run();
  single.backend = "cpu:f32", single.steps = 20, single.rate = 1e-3;
  const TrainingTrace one = alone(single);
  for (const Layout& layout : {Layout{2, 1, 1}, {4, 2, 2}}) {
    single.parallel.tensor = layout.tensor, single.parallel.pipeline = layout.pipeline;
    for (const TrainingTrace& trace : simulated(single, layout.ranks())) {
      EXPECT_LT(worst(trace.losses, one.losses), 1e-5) << testing::PrintToString(layout);
      EXPECT_LT(worst(trace.norms, one.norms), 1e-4) << testing::PrintToString(layout);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, InShards, testing::Values("transformer_all", "transformer_none", "gnmt_none", "gnmt_all"),
                         [](const auto& info) { return info.param; });

// Half-precision sums of activations are rounded once more for each shard.
TEST(Shards, InBfloat16LossesStayNear) {
  TrainingRun run;
  run.backend = "cpu:bf16", run.layers = 2, run.heads = 4, run.steps = 10, run.rate = 1e-3;
  const TrainingTrace one = alone(run);
  run.parallel.tensor = 4;
  for (const TrainingTrace& trace : simulated(run, 4)) EXPECT_LT(worst(trace.losses, one.losses), 2e-3);
}

// Strategies run among the ranks with the same shard, as they run among whole replicas.
TEST(Shards, StrategiesDoWhatTheyDoWithWholeReplicas) {
  std::vector<std::pair<std::string, std::function<void(StrategyOptions&)>>> variants{
      {"blocking", [](StrategyOptions& o) { o.overlap = false; }},
      {"assumed-sparse", [](StrategyOptions& o) { o.embedding_gradients = EmbeddingGradients::assumed_sparse; }},
      {"sharded", [](StrategyOptions& o) { o.sharded_optimizer = true; }},
      {"parameter-server", [](StrategyOptions& o) { o = strategy_preset("parameter-server"); }},
      {"bmuf", [](StrategyOptions& o) { o = strategy_preset("bmuf"), o.periodic.interval = 3; }},
  };
  for (const auto& [name, set] : variants) {
    TrainingRun run;
    run.model = "transformer-tiny", run.tied = "decoder", run.steps = 9;
    set(run.strategy);
    const auto whole = simulated(run, 2);
    run.parallel.tensor = 2;
    const auto divided = simulated(run, 4);
    for (size_t r = 0; r < 4; ++r) {
      EXPECT_LT(worst(divided[r].losses, whole[r / 2].losses), 1e-9) << name;
      EXPECT_LT(worst(divided[r].norms, whole[r / 2].norms), 1e-9) << name;
      EXPECT_LT(worst(divided[r].parameters, part_of(whole[r / 2].parameters, divided[r])), 1e-8) << name;
    }
  }
}

// What a code leaves out depends on how the flat buffer is cut into chunks, so nothing is compared with whole replicas; but what is not cut
// must stay the same on all shards, although each compresses its own gradient.
TEST(Shards, CompressedUpdatesKeepWhatIsNotCutEqual) {
  for (const std::string name : {"gradient-dropping", "sparse-local"}) {
    TrainingRun run;
    run.model = "transformer-tiny", run.strategy = strategy_preset(name), run.steps = 12;
    run.strategy.compression.keep = 0.05, run.strategy.compression.dense_below = 32, run.strategy.compression.keep_warmup = 0;
    const TrainingTrace one = alone(run);
    run.parallel.tensor = 2;
    const auto traces = simulated(run, 4);
    for (const TrainingTrace& trace : traces) EXPECT_LT(trace.losses.back(), trace.losses.front());
    EXPECT_FALSE(traces[1].copies.empty());
    expect_whole(traces, 2, one);
  }
}

}  // namespace
}  // namespace starling
