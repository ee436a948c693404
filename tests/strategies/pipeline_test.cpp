// A model in stages against the same model whole: losses, norms and parameters, for every way to divide the ranks.
#include <gtest/gtest.h>

#include "backend/meta.h"
#include "tests/strategies/divided.h"
#include "tests/strategies/variants.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

struct Shape {
  std::string model, tied;
  int64_t layers;
};
void PrintTo(const Shape& s, std::ostream* out) { *out << s.model << " " << s.tied; }

class InStages : public testing::TestWithParam<Shape> {
 protected:
  static TrainingRun run() {
    TrainingRun run;
    run.model = GetParam().model, run.tied = GetParam().tied, run.layers = GetParam().layers, run.steps = 5;
    return run;
  }
};

TEST_P(InStages, LosesNothingAgainstOneWorker) {
  const TrainingTrace one = alone(run());
  for (const auto& [stages, replicas] : of_cases<std::pair<int, int>>({{2, 2}, {3, 1}, {2, 1}, {4, 2}}, 2)) {
    TrainingRun divided = run();
    divided.parallel.pipeline = stages;
    const auto traces = simulated(divided, stages * replicas);
    for (const TrainingTrace& trace : traces) {
      EXPECT_LT(worst(trace.losses, one.losses), 1e-9) << stages << " stages, " << replicas << " replicas";
      EXPECT_LT(worst(trace.norms, one.norms), 1e-9) << stages << " stages, " << replicas << " replicas";
      EXPECT_LT(worst(trace.parameters, part_of(one.parameters, trace)), 1e-8) << stages << " stages, " << replicas << " replicas";
      EXPECT_EQ(trace.tokens, one.tokens);
    }
    expect_whole(traces, stages, one);
  }
}

TEST_P(InStages, InSinglePrecisionStaysNear) {
  TrainingRun single = run();
  single.backend = "cpu:f32", single.steps = 20, single.rate = 1e-3;
  const TrainingTrace one = alone(single);
  single.parallel.pipeline = 2;
  for (const int replicas : {1, 2})
    for (const TrainingTrace& trace : simulated(single, 2 * replicas)) {
      EXPECT_LT(worst(trace.losses, one.losses), 1e-5);
      EXPECT_LT(worst(trace.norms, one.norms), 1e-4);
    }
}

INSTANTIATE_TEST_SUITE_P(Models, InStages,
                         testing::Values(Shape{"transformer-tiny", "all", 2}, Shape{"transformer-tiny", "decoder", 2},
                                         Shape{"transformer-tiny", "none", 3}, Shape{"gnmt-small", "none", 3}),
                         [](const auto& info) {
                           std::string name = info.param.model + "_" + info.param.tied;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

// Strategies run among the ranks that hold the same stage, as they run among whole replicas.
TEST(Pipeline, StrategiesDoWhatTheyDoWithWholeReplicas) {
  for (const Variant& v : variants_of_parts()) {
    TrainingRun run;
    run.layers = 2, run.model = "transformer-tiny", run.tied = "decoder", run.steps = 9;
    run.strategy = v.options;
    ParallelOptions parallel;
    parallel.pipeline = 3;
    expect_as_two_whole_replicas(run, parallel, v.name);
  }
}

TEST(Pipeline, PassesSentencesTwiceAsOneWorkerDoes) {
  for (const char* model : {"transformer-tiny", "gnmt-small"}) {
    TrainingRun run;
    run.layers = 2, run.model = model, run.tied = "none", run.steps = 4, run.r_drop = 5, run.r_drop_from = 0.5;
    const TrainingTrace one = alone(run);
    TrainingRun without = run;
    without.r_drop = 0;
    EXPECT_EQ(alone(without).norms[1], one.norms[1]);
    EXPECT_GT(std::abs(alone(without).norms[2] - one.norms[2]), 1e-5);  // by the passes of the second half
    run.strategy.embedding_gradients = EmbeddingGradients::assumed_sparse;
    std::vector<TrainingTrace> traces = simulated(run, 2);
    run.parallel.pipeline = 3;
    if (run.model == "gnmt-small") run.parallel.time_pieces = 3;
    for (TrainingTrace& trace : simulated(run, 6)) traces.push_back(std::move(trace));
    for (const TrainingTrace& trace : traces) {
      EXPECT_LT(worst(trace.losses, one.losses), 1e-9) << model;
      EXPECT_LT(worst(trace.norms, one.norms), 1e-9) << model;
      EXPECT_LT(worst(trace.parameters, part_of(one.parameters, trace)), 1e-8) << model;
      EXPECT_EQ(trace.tokens, one.tokens);
    }
  }
}

TEST(Simulation, KnowsTheCostOfPassingSentencesTwice) {
  std::vector<double> seconds;
  for (const double r_drop : {0.0, 5.0}) {
    Scenario scenario;
    scenario.ranks = 1, scenario.timing_only = true, scenario.compute = {1, 1, 0, 0, 0};
    simulate(scenario, [&](World& world) {
      MetaBackend backend(DType::f32, DType::f32);
      const auto model = make_model(small_model("transformer-tiny", "all"), {400, 400}, backend, std::nullopt, true);
      StepOptions options;
      options.r_drop = r_drop;
      Replica replica(*model, options, world);
      const Batch batch = random_batch(3, 0, 400);
      const double begin = world.clock->seconds();
      EXPECT_EQ(replica.step({&batch, 1}).totals.tokens, batch.target.count());
      seconds.push_back(world.clock->seconds() - begin);
    });
  }
  EXPECT_NEAR(seconds[1] / seconds[0], 2, 0.05);
}

TEST(OneForwardOneBackward, BoundsThePassesUnderWay) {
  for (const int stages : {1, 2, 4, 7})
    for (int stage = 0; stage < stages; ++stage)
      for (const size_t passes : {0u, 1u, 2u, 5u, 16u}) {
        const std::vector<PipelineOp> turns = one_forward_one_backward(stage, stages, passes);
        ASSERT_EQ(turns.size(), 2 * passes);
        size_t forward = 0, backward = 0, most = 0;
        for (const PipelineOp& turn : turns) {
          ASSERT_NE(turn.kind, PipelineOp::output);
          EXPECT_EQ(turn.pass, turn.kind == PipelineOp::forward ? forward : backward);
          ++(turn.kind == PipelineOp::forward ? forward : backward);
          ASSERT_LE(backward, forward);
          most = std::max(most, forward - backward);
        }
        EXPECT_EQ(most, std::min(passes, static_cast<size_t>(stages - stage)));
      }
  EXPECT_EQ(
      one_forward_one_backward(1, 3, 2),
      (std::vector<PipelineOp>{{PipelineOp::forward, 0}, {PipelineOp::forward, 1}, {PipelineOp::backward, 0}, {PipelineOp::backward, 1}}));
}

TEST(StageUnits, NoOtherCutHasACheaperMostCostlyStage) {
  const auto backend = make_backend("reference");
  for (const std::string preset : {"transformer-tiny", "gnmt-small"}) {
    const auto model = declare_model(small_model(preset, "all", 3), {400, 400}, *backend);
    const std::vector<double> costs = unit_costs(*model);
    const auto cost = [&](size_t begin, size_t end) {
      double sum = 0;
      for (size_t u = begin; u < end; ++u) sum += costs[u];
      return sum;
    };
    ASSERT_EQ(costs.size(), preset == "gnmt-small" ? 8u : 7u);
    const std::vector<UnitRange> three = stage_units(*model, 3);
    EXPECT_EQ(three[0].begin, 0u);
    EXPECT_EQ(three[0].end, three[1].begin);
    EXPECT_EQ(three[1].end, three[2].begin);
    EXPECT_EQ(three[2].end, costs.size());
    double chosen = 0, best = 1e300;
    for (const UnitRange& r : three) chosen = std::max(chosen, cost(r.begin, r.end));
    for (size_t a = 1; a < costs.size(); ++a)
      for (size_t b = a + 1; b < costs.size(); ++b) best = std::min(best, std::max({cost(0, a), cost(a, b), cost(b, costs.size())}));
    EXPECT_EQ(chosen, best) << preset;
    EXPECT_THROW(stage_units(*model, static_cast<int>(costs.size()) + 1), ConfigError);
  }
}

}  // namespace
}  // namespace starling
