// GNMT with its layers in stages and its output on every stage for a share of the sentences: what one worker computes, what each rank owns
// and in which order it computes.
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "tests/strategies/divided.h"
#include "tests/strategies/variants.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

TrainingRun hybrid_run() {
  TrainingRun run;
  run.model = "gnmt-small", run.layers = 3, run.tied = "none", run.attention_place = AttentionPlace::top;
  run.steps = 5, run.micro_tokens = 60, run.strategy.bucket_mib = 0.004;
  return run;
}

TrainingRun divided(TrainingRun run, int stages, int64_t pieces) {
  run.parallel.pipeline = stages, run.parallel.time_pieces = pieces, run.parallel.hybrid = true;
  return run;
}

void expect_near(const TrainingTrace& trace, const TrainingTrace& one) {
  EXPECT_LT(worst(trace.losses, one.losses), 1e-9);
  EXPECT_LT(worst(trace.norms, one.norms), 1e-9);
  EXPECT_LT(worst(trace.parameters, one.parameters), 1e-8);
  EXPECT_LT(worst(trace.copies, one.parameters), 1e-8);
  EXPECT_EQ(trace.tokens, one.tokens);
  EXPECT_EQ(trace.clipped, one.clipped);
}

// Every layer's parameters are on one stage, the output's on all, equal bit for bit.
void expect_divided(const std::vector<TrainingTrace>& traces, const TrainingTrace& one) {
  std::set<std::string> names;
  for (const TrainingTrace& trace : traces) {
    EXPECT_EQ(trace.copies.count("decoder.readout.weight"), 1u);
    for (const auto& [name, values] : trace.parameters) names.insert(name);
    for (const auto& [name, values] : trace.copies) {
      names.insert(name);
      const auto& first = traces[0].copies.contains(name) ? traces[0].copies : traces[0].parameters;
      if (first.contains(name)) {
        EXPECT_EQ(values, first.at(name)) << name;
      }
    }
  }
  EXPECT_EQ(names.size(), one.parameters.size());
}

TEST(Hybrid, LosesNothingAgainstOneWorker) {
  const TrainingRun run = hybrid_run();
  const TrainingTrace one = alone(run);
  for (const auto& [stages, replicas] : of_cases<std::pair<int, int>>({{3, 1}, {2, 2}, {2, 1}, {4, 1}, {4, 2}}, 2))
    for (const int64_t pieces : {0, 3}) {
      SCOPED_TRACE(fmt::format("{} stages, {} replicas, {} pieces", stages, replicas, pieces));
      const auto traces = simulated(divided(run, stages, pieces), stages * replicas);
      for (const TrainingTrace& trace : traces) expect_near(trace, one);
      expect_divided(traces, one);
    }
}

// The decoder's embedding is the output table too: the stage with the bottom decoder layer owns it. States are clipped.
TEST(Hybrid, LosesNothingWithATiedTableAndClippedStates) {
  for (const std::string tied : {"decoder", "all"}) {
    TrainingRun run = hybrid_run();
    run.tied = tied, run.state_clip = 0.02;
    const TrainingTrace one = alone(run);
    EXPECT_GT(one.clipped.front(), 100);
    const auto traces = simulated(divided(run, 4, 2), 4);
    for (const TrainingTrace& trace : traces) expect_near(trace, one);
    expect_divided(traces, one);
  }
}

TEST(Hybrid, InSinglePrecisionStaysNear) {
  TrainingRun run = hybrid_run();
  run.backend = "cpu:f32", run.steps = 20, run.rate = 1e-3;
  const TrainingTrace one = alone(run);
  for (const auto& [stages, replicas] : {std::pair(2, 2), {4, 1}})
    for (const TrainingTrace& trace : simulated(divided(run, stages, 3), stages * replicas)) {
      EXPECT_LT(worst(trace.losses, one.losses), 1e-5);
      EXPECT_LT(worst(trace.norms, one.norms), 1e-4);
    }
}

// Batches of fewer sentences than stages: some stages have no share of the output.
TEST(Hybrid, AStageMayHaveNoSentenceOfAMicroBatch) {
  TrainingRun run = hybrid_run();
  run.sentences = 3;
  const TrainingTrace one = alone(run);
  for (const TrainingTrace& trace : simulated(divided(run, 4, 2), 4)) expect_near(trace, one);
}

TEST(Hybrid, StrategiesDoWhatTheyDoWithWholeReplicas) {
  for (const Variant& v : variants_of_parts()) {
    SCOPED_TRACE(v.name);
    TrainingRun run = hybrid_run();
    run.steps = 9;
    run.strategy = v.options;
    const auto whole = simulated(run, 2);
    const auto parts = simulated(divided(run, 2, 3), 4);
    for (size_t r = 0; r < 4; ++r) {
      EXPECT_LT(worst(parts[r].losses, whole[r / 2].losses), 1e-9);
      EXPECT_LT(worst(parts[r].norms, whole[r / 2].norms), 1e-9);
      EXPECT_LT(worst(parts[r].parameters, whole[r / 2].parameters), 1e-8);
      EXPECT_LT(worst(parts[r].copies, whole[r / 2].parameters), 1e-8);
    }
  }
}

// The flat buffers of a replica's ranks together have each parameter once, and of the output's about equal parts.
TEST(Hybrid, EachStageOwnsAPartOfTheOutput) {
  const auto backend = make_backend("reference");
  ModelConfig config = small_model("gnmt-small", "none", 3);
  config.attention_place = AttentionPlace::top, config.readout = Readout::context;
  const auto whole = make_model(config, {400, 400}, *backend, 3, true);
  for (const int stages : {2, 4}) {
    std::map<std::string, std::vector<double>> all;
    int64_t owned = 0;
    for (const UnitRange& units : stage_units(*whole, stages, true)) {
      const auto part = make_model(config, {400, 400}, *backend, 3, true, units);
      EXPECT_TRUE(part->has_output());
      EXPECT_FALSE(part->whole());
      owned += part->parameters().count();
      for (const Parameter* p : part->parameters().declared()) {
        const Tensor own = part->parameters().owned_value(*p);
        if (!own) continue;
        const std::vector<double> values = own.to_doubles();
        all[p->name].insert(all[p->name].end(), values.begin(), values.end());
        if (p->name == "decoder.output") {
          EXPECT_EQ(own.count(), 400 * 16 / stages);
        }
      }
    }
    EXPECT_EQ(owned, whole->parameters().count());
    for (const Parameter& p : whole->parameters().all()) EXPECT_EQ(all[p.name], p.value.to_doubles()) << p.name;
  }
}

TEST(HybridTurns, WhatATurnReadsOfOtherStagesIsOfTheRoundBefore) {
  using T = PipelineOp;
  EXPECT_EQ(hybrid_schedule(0, 3), (std::vector<PipelineOp>{{T::forward, 0},
                                                            {T::forward, 1},
                                                            {T::output, 0},
                                                            {T::forward, 2},
                                                            {T::output, 1},
                                                            {T::backward, 0},
                                                            {T::output, 2},
                                                            {T::backward, 1},
                                                            {T::backward, 2}}));
  EXPECT_EQ(hybrid_schedule(1, 3), (std::vector<PipelineOp>{{T::forward, 0},
                                                            {T::forward, 1},
                                                            {T::output, 0},
                                                            {T::backward, 0},
                                                            {T::output, 1},
                                                            {T::forward, 2},
                                                            {T::backward, 1},
                                                            {T::output, 2},
                                                            {T::backward, 2}}));
  EXPECT_TRUE(hybrid_schedule(0, 0).empty());
}

// A large vocabulary fills all stages up to the same cost, a small one those with few layers only.
TEST(HybridShares, TheOutputGoesWhereTheLayersAreFew) {
  const auto backend = make_backend("reference");
  ModelConfig config = small_model("gnmt-small", "none", 3);
  config.attention_place = AttentionPlace::top, config.readout = Readout::context;
  for (const int64_t vocabulary : {40, 4000}) {
    const auto model = make_model(config, {vocabulary, vocabulary}, *backend, 3, true);
    const std::vector<double> costs = unit_costs(*model);
    for (const int stages : {2, 3, 4}) {
      const std::vector<UnitRange> ranges = stage_units(*model, stages, true);
      const std::vector<double> weights = output_weights(*model, ranges);
      std::vector<double> totals;
      for (size_t s = 0; s < ranges.size(); ++s) {
        totals.push_back(weights[s]);
        for (size_t unit = ranges[s].begin; unit < ranges[s].end; ++unit) totals[s] += costs[unit];
      }
      EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0) / costs.back(), 1, 1e-12);
      const double least = *std::min_element(totals.begin(), totals.end());
      for (size_t s = 0; s < ranges.size(); ++s)  // those that compute some of it have all come to the same
        if (weights[s] > 0) {
          EXPECT_NEAR(totals[s] / least, 1, 1e-12) << vocabulary << " " << s;
        }
    }
  }
}

}  // namespace
}  // namespace starling
