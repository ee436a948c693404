// GNMT in stages that pass micro-batches on in pieces of time: what one worker computes, and the time that it takes.
#include <gtest/gtest.h>

#include <iostream>

#include "backend/meta.h"
#include "tests/strategies/divided.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

// Many buckets, so that one which is sent before all pieces have added to it shows.
TEST(Wavefront, LosesNothingAgainstOneWorker) {
  for (const AttentionPlace place : {AttentionPlace::bottom, AttentionPlace::top}) {
    TrainingRun run;
    run.model = "gnmt-small", run.layers = 3, run.steps = 2, run.micro_tokens = 60, run.strategy.bucket_mib = 0.004;
    run.attention_place = place, run.tied = "none";
    const TrainingTrace one = alone(run);
    for (const auto& [stages, replicas] : of_cases<std::pair<int, int>>({{3, 1}, {2, 2}, {2, 1}, {4, 2}}, 2))
      for (const int64_t pieces : of_cases<int64_t>({4, 100, 1, 2}, 2)) {
        SCOPED_TRACE(fmt::format("attention at the {}, {} stages, {} replicas, {} pieces", place, stages, replicas, pieces));
        run.parallel.pipeline = stages, run.parallel.time_pieces = pieces;
        const auto traces = simulated(run, stages * replicas);
        for (const TrainingTrace& trace : traces) {
          EXPECT_LT(worst(trace.losses, one.losses), 1e-9);
          EXPECT_LT(worst(trace.norms, one.norms), 1e-9);
          EXPECT_LT(worst(trace.parameters, one.parameters), 1e-8);
          EXPECT_EQ(trace.tokens, one.tokens);
        }
        expect_whole(traces, stages, one);
      }
  }
}

// Eight equal encoder layers, each on a rank of its own, and what is before and behind them on two ranks that take no time; messages take
// none either. Returns the virtual time of an update, ns.
int64_t update_ns(int64_t pieces, double forward_gflops, double backward_gflops) {
  constexpr int64_t kLayers = 8, kSteps = 30, kSentences = 64;
  ModelConfig config = model_preset("gnmt");
  config.width = 64, config.encoder_layers = kLayers + 2, config.decoder_layers = 2;
  std::vector<UnitRange> stages{{0, 2}};  // the layer above the bottom one is wider
  while (stages.size() <= kLayers) stages.push_back({stages.back().end, stages.back().end + 1});
  stages.push_back({stages.back().end, static_cast<size_t>(config.encoder_layers + config.decoder_layers + 1)});

  Batch batch;
  const std::vector<int32_t> sentence(kSteps, 5);
  for (int64_t b = 0; b < kSentences; ++b) {
    for (PackedTokens* side : {&batch.source, &batch.target}) side->append(sentence.data(), sentence.data() + sentence.size());
    batch.sample_ids.push_back(b);
  }
  Scenario scenario;
  scenario.ranks = static_cast<int>(stages.size()), scenario.timing_only = true;
  scenario.network.inter = {0, 1e6, 0}, scenario.network.eager_bytes = int64_t{1} << 40;
  scenario.compute = {forward_gflops, backward_gflops, 0, 0, 0};
  scenario.speeds.assign(stages.size(), 1);
  scenario.speeds.front() = scenario.speeds.back() = 1e9;
  std::vector<int64_t> ends(stages.size());
  simulate(scenario, [&](World& world) {
    MetaBackend backend(DType::f32, DType::f32);
    ParallelOptions parallel;
    parallel.pipeline = static_cast<int64_t>(stages.size()), parallel.time_pieces = pieces;
    const Mesh mesh(*world.comm, parallel);
    const auto model = make_model(config, {100, 100}, backend, std::nullopt, true, stages[static_cast<size_t>(mesh.stage())]);
    StepOptions options;
    Replica replica(*model, options, world, mesh);
    const int64_t begin = world.clock->now_ns();
    replica.step({&batch, 1});
    ends[static_cast<size_t>(mesh.stage())] = world.clock->now_ns() - begin;
  });
  return *std::max_element(ends.begin(), ends.end());
}

// T pieces through L layers take (T + L - 1) / T of the time of one layer, in place of L.
TEST(Wavefront, GainsWhatPiecesOfEqualTimeCanGain) {
  constexpr double L = 8;
  for (const auto& [name, forward, backward] :
       {std::tuple("forward pass", 1.0, 0.0), {"backward pass", 0.0, 1.0}, {"forward and backward pass", 1.0, 1.0}}) {
    const auto whole = static_cast<double>(update_ns(0, forward, backward));
    for (const int64_t T : {1, 2, 5, 30}) {
      const auto t = static_cast<double>(T);
      const double gain = whole / static_cast<double>(update_ns(T, forward, backward)), expected = t * L / (t + L - 1);
      EXPECT_NEAR(gain, expected, 0.05 * expected) << name << " in " << T << " pieces";
      std::cout << fmt::format("{} of 8 layers in {} pieces: {:.3f} times as fast as layer by layer, expected {:.3f}\n", name, T, gain,
                               expected);
    }
  }
}

}  // namespace
}  // namespace starling
