// The operations that replica/cost counts from shapes, against the products that a real step executes.
#include "replica/cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cpu/product_times.h"
#include "backend/profiled.h"
#include "measure/calibration.h"
#include "replica/replica.h"

namespace starling {
namespace {

// Sentences of the given lengths: with eight, 64 tokens and multiples of it, so that there are no padding rows.
Batch even_batch(int32_t source_length, int32_t target_length, int64_t sentences = 8) {
  Batch batch;
  for (int64_t i = 0; i < sentences; ++i) {
    const std::vector<int32_t> source(static_cast<size_t>(source_length), 5), target(static_cast<size_t>(target_length), 6);
    batch.source.append(source.data(), source.data() + source.size());
    batch.target.append(target.data(), target.data() + target.size());
    batch.sample_ids.push_back(i);
  }
  return batch;
}

double executed_flops(const ProfiledBackend& profiled) {
  double flops = 0;
  for (const auto& [shape, calls] : profiled.products) flops += product_flops(shape) * static_cast<double>(calls);
  return flops;
}

TEST(ComputeCost, CountsTheProductsOfAStep) {
  for (const std::string tied : {"all", "none"})
    for (const auto& [source, target] : {std::pair(8, 8), {16, 8}, {8, 24}}) {
      const auto backend = make_backend("cpu:f32", 1);
      ProfiledBackend profiled(*backend);
      ModelConfig config = model_preset("transformer-tiny");
      config.tied_embeddings = from_word<TiedEmbeddings>(tied);
      const auto model = make_model(config, {100, 100}, profiled, 1, true);
      StepOptions options;
      options.strategy.bucket_mib = 0.1;
      World world = make_local_world();
      Replica replica(*model, options, world);
      const Batch batch = even_batch(source, target);
      replica.step({&batch, 1});
      const double executed = executed_flops(profiled);
      const ComputeCost& cost = replica.cost();
      const PassRows rows = cost.rows(batch);
      const double counted = cost.forward(rows).flops + cost.backward(rows).flops;
      EXPECT_NEAR(counted / executed, 1, 1e-9) << tied << " " << source << " " << target;
      double pieces = 0;
      for (size_t b = 0; b < replica.strategy().buckets().size(); ++b) pieces += cost.backward(rows, static_cast<int64_t>(b)).flops;
      EXPECT_NEAR(pieces / cost.backward(rows).flops, 1, 1e-9);
      Work units;
      const auto D = static_cast<double>(config.width), F = static_cast<double>(config.feed_forward);
      for (size_t u = 0; u < model->units(); ++u) {
        const Work unit = cost.forward_of_unit(u, rows, true);
        units.flops += unit.flops, units.bytes += unit.bytes;
        const bool encoder = static_cast<int64_t>(u) < config.encoder_layers, output = u + 1 == model->units();
        const double layer = output    ? 3 * 2 * 100 * D * rows.target  // its gradients come with the loss
                             : encoder ? 2 * (4 * D * D + 2 * D * F) * rows.source
                                       : 2 * (6 * D * D + 2 * D * F) * rows.target + 2 * 2 * D * D * rows.source;
        EXPECT_DOUBLE_EQ(unit.flops, layer) << "unit " << u;
      }
      EXPECT_NEAR(units.flops / cost.forward(rows, true).flops, 1, 1e-9);
      EXPECT_NEAR(units.bytes / cost.forward(rows, true).bytes, 1, 1e-9);
    }
}

// Recurrent products have rows for the sentences of each step but the first, rounded up to 16; all others those of all tokens, rounded up
// to 64.
TEST(ComputeCost, CountsTheRowsOfAnLstm) {
  const auto backend = make_backend("cpu:f32", 1);
  ProfiledBackend profiled(*backend);
  ModelConfig config = model_preset("gnmt-small");
  config.encoder_layers = config.decoder_layers = 3, config.width = 32, config.readout = Readout::context;
  const auto model = make_model(config, {100, 100}, profiled, 1, true);
  World world = make_local_world();
  Replica replica(*model, {}, world);
  for (const auto& [source, target, sentences] : {std::tuple(40, 40, 16), {40, 80, 16}, {80, 40, 16}, {25, 30, 5}, {25, 30, 20}}) {
    SCOPED_TRACE(fmt::format("{} sentences of {} and {} tokens", sentences, source, target));
    profiled.clear();
    const Batch batch = even_batch(source, target, sentences);
    replica.step({&batch, 1});
    const PassRows rows = replica.cost().rows(batch);
    const int64_t running = sentences <= 16 ? 16 : 32;
    EXPECT_EQ(rows.source_recurrent, static_cast<double>((source - 1) * running));
    EXPECT_EQ(rows.target_recurrent, static_cast<double>((target - 1) * running));
    EXPECT_EQ(rows.source, static_cast<double>((source * sentences + 63) / 64 * 64));
    const double counted = replica.cost().forward(rows).flops + replica.cost().backward(rows).flops;
    // The last step has fewer rows behind it than 16 where there are no more.
    EXPECT_NEAR(counted / executed_flops(profiled), 1, sentences == 16 ? 1e-9 : 5e-3);
  }
}

// A clock that notes what it is told.
class Listener : public Clock {
 public:
  int64_t now_ns() const override { return 0; }
  void begin(const Work& work) override { pieces.push_back(work); }
  std::vector<Work> pieces;
};

// Weights of 4 and 2 bytes, those of the output table V [v, d] read twice and its gradient added to in the forward pass.
TEST(ComputeCost, MovesWeightsEachPassAndPacksThemOnceAnUpdate) {
  for (const std::string name : {"cpu:f32", "cpu:bf16"}) {
    if (name == "cpu:bf16" && !cpu_has_bf16()) continue;
    const auto backend = make_backend(name, 1);
    const double element = name == "cpu:f32" ? 4 : 2, d = 128, v = 104, inner = 512;
    ModelConfig config = model_preset("transformer-tiny");
    const auto model = make_model(config, {104, 104}, *backend, 1, true);
    // Self-attention, in the decoder attention to the source as well, and the two matrices of the feed-forward layer.
    const double matrices = 2 * (4 * d * d + 2 * d * inner) + 2 * (8 * d * d + 2 * d * inner), table = v * d;
    World world = make_local_world();
    auto clock = std::make_unique<Listener>();
    std::vector<Work>& pieces = clock->pieces;
    world.clock = std::move(clock);
    StepOptions options;
    Replica replica(*model, options, world);
    const std::vector<Batch> share{even_batch(8, 8), even_batch(8, 16), even_batch(8, 8)};
    for (int update = 0; update < 2; ++update) {
      pieces.clear();
      replica.step(share);
      std::vector<double> forward, backward;
      double last = 0;  // the last backward pass comes bucket by bucket
      for (const Work& work : pieces) {
        if (work.kind == Work::forward) forward.push_back(work.bytes);
        if (work.kind == Work::backward) (backward.size() + 1 < share.size() ? backward.emplace_back() : last) += work.bytes;
      }
      // 64, 64 and 64 source tokens, 64, 128 and 64 target tokens.
      const double looked = (4 + 2 * element) * d, looked_back = (element + 8) * d;
      const double reads = element * matrices + 2 * element * table + 8 * table, adds = (element + 8) * matrices;
      const double packs = (4 + 2 * element) * (matrices + 2 * table), packs_back = (4 + 2 * element) * matrices;
      EXPECT_THAT(forward, testing::ElementsAre(reads + packs + 128 * looked, reads + 192 * looked, reads + 128 * looked)) << name;
      EXPECT_THAT(backward, testing::ElementsAre(adds + packs_back + 128 * looked_back, adds + 192 * looked_back)) << name;
      EXPECT_NEAR(last, adds + 128 * looked_back, 1e-6 * adds) << name;
    }
  }
}

// A machine that computes 50 GFLOP/s forwards and 40 backwards and moves weights at 20 GB/s.
TEST(Calibration, FindsTheRatesThatTimesWereMadeWith) {
  const auto passes = [](double forward_gflop, double forward_gb, double backward_gflop, double backward_gb) {
    MeasuredPasses p{{Work::forward, 1e9 * forward_gflop, 1e9 * forward_gb}, {Work::backward, 1e9 * backward_gflop, 1e9 * backward_gb}};
    p.forward_s = forward_gflop / 50 + forward_gb / 20, p.backward_s = backward_gflop / 40 + backward_gb / 20;
    return p;
  };
  const MeasuredPasses whole = passes(100, 1, 200, 2);
  // Small passes compute more, too: their padding rows.
  for (const double idle : {1.0, 1.25}) {
    const Calibration c = rates_of(1e9, 60e9, 0.5, whole, passes(100 * idle, 16, 200 * idle, 32));
    EXPECT_NEAR(c.forward_gflops, 50, 1e-9);
    EXPECT_NEAR(c.backward_gflops, 40, 1e-9);
    EXPECT_NEAR(c.weights_gb_s, 20, 1e-9);
    EXPECT_NEAR(c.update_gb_s, 16, 1e-9);
  }
  // What a disturbed measurement found no time for is moved as fast as memory can.
  MeasuredPasses small = passes(100, 16, 200, 32);
  small.forward_s = whole.forward_s, small.backward_s = 0.9 * whole.backward_s;
  EXPECT_NEAR(rates_of(1e9, 60e9, 0.5, whole, small).weights_gb_s, 60, 1e-9);
  EXPECT_THROW(rates_of(1e9, 60e9, 0, whole, small), ConfigError);
  EXPECT_THROW(rates_of(1e9, 20e9, 0.5, passes(1, 4, 1, 4), passes(1, 64, 1, 64)), ConfigError);
}

}  // namespace
}  // namespace starling
