// Models whose layers and vocabularies are in shards, against the same models whole.
#include <gtest/gtest.h>

#include "parallel/decoding_model.h"
#include "tests/strategies/divided.h"
#include "tests/strategies/variants.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

struct Layout {
  int tensor, pipeline, replicas;
  int ranks() const { return tensor * pipeline * replicas; }
};
void PrintTo(const Layout& l, std::ostream* out) {
  *out << l.tensor << " shards, " << l.pipeline << " stages, " << l.replicas << " replicas";
}

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
  for (const Layout& layout : of_cases<Layout>({{4, 1, 2}, {2, 2, 1}, {2, 1, 1}, {4, 2, 1}, {2, 3, 2}}, 2)) {
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
  for (const Layout& layout : of_cases<Layout>({{2, 1, 1}, {4, 2, 2}}, 1)) {
    single.parallel.tensor = layout.tensor, single.parallel.pipeline = layout.pipeline;
    for (const TrainingTrace& trace : simulated(single, layout.ranks())) {
      EXPECT_LT(worst(trace.losses, one.losses), 1e-5) << testing::PrintToString(layout);
      EXPECT_LT(worst(trace.norms, one.norms), 1e-4) << testing::PrintToString(layout);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, InShards, testing::Values("transformer_all", "transformer_none", "gnmt_none", "gnmt_all"),
                         [](const auto& info) { return info.param; });

// States go from piece to piece within a stage: hidden ones whole, cells as shards.
TEST(Shards, PiecesOfTimeLoseNothing) {
  TrainingRun run;
  run.model = "gnmt-small", run.tied = "none", run.layers = 2, run.steps = 5;
  const TrainingTrace one = alone(run);
  run.parallel.pipeline = 2, run.parallel.tensor = 2, run.parallel.time_pieces = 3;
  for (const TrainingTrace& trace : simulated(run, 4)) {
    EXPECT_LT(worst(trace.losses, one.losses), 1e-9);
    EXPECT_LT(worst(trace.parameters, part_of(one.parameters, trace)), 1e-8);
  }
}

// Whatever parts the ranks have, those that translate get their shards of the same whole.
TEST(DecodingModels, AreMadeOfThePartsOfAnyLayout) {
  struct Case {
    std::string model, tied;
    int stages, shards, decoding;
  };
  for (const Case& c : {Case{"transformer-tiny", "all", 2, 1, 2},
                        {"transformer-tiny", "none", 2, 2, 4},
                        {"transformer-tiny", "decoder", 3, 1, 2},
                        {"transformer-tiny", "all", 3, 2, 4},
                        {"gnmt-small", "none", 2, 2, 4},
                        {"gnmt-small", "all", 3, 1, 2}}) {
    const ModelConfig config = small_model(c.model, c.tied, 2, 4);
    const auto reference = make_backend("reference");
    const auto whole = make_model(config, {41, 41}, *reference, 5, false);
    Scenario scenario;
    scenario.ranks = 2 * c.stages * c.shards;
    int made = 0;
    simulate(scenario, [&](World& world) {
      ParallelOptions parallel;
      parallel.pipeline = c.stages, parallel.tensor = c.shards;
      const Mesh mesh(*world.comm, parallel);
      const auto backend = make_backend("reference");
      const auto part = make_model(config, {41, 41}, *backend, 5, false, part_of(mesh, config, {41, 41}, *backend));
      DecodingModel decoding(*part, mesh);
      EXPECT_EQ(decoding.shards(), c.decoding);
      for (int time = 0; time < 2; ++time) {
        const auto model = decoding.make();
        EXPECT_EQ(model != nullptr, mesh.replica().rank() < c.decoding);
        if (!model) continue;
        ++made;
        for (const Parameter* p : model->parameters().declared()) {
          const std::vector<double> all = whole->parameters().declared()[p->index]->value.to_doubles();
          std::vector<double> expected;
          for (const Range& r : model->parameters().local_ranges(*p))
            expected.insert(expected.end(), all.begin() + r.begin, all.begin() + r.end);
          EXPECT_EQ(p->value.to_doubles(), expected) << p->name << " of " << c.model << " on rank " << world.comm->rank();
        }
      }
    });
    EXPECT_EQ(made, 4 * c.decoding);
  }
}

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
  for (const Variant& v : variants_of_parts()) {
    TrainingRun run;
    run.model = "transformer-tiny", run.tied = "decoder", run.steps = 9;
    run.strategy = v.options;
    ParallelOptions parallel;
    parallel.tensor = 2;
    expect_as_two_whole_replicas(run, parallel, v.name);
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
