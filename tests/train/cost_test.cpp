// The operations that train/cost counts from shapes, against the products that a real step executes.
#include "train/cost.h"

#include <gtest/gtest.h>

#include "backend/cpu/product_times.h"
#include "backend/profiled.h"
#include "train/replica.h"

namespace starling {
namespace {

// Sentences of the given lengths: with eight, 64 tokens and multiples of it, so that there are no idle rows.
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
      double executed = 0;
      for (const auto& [shape, calls] : profiled.products) executed += product_flops(shape) * static_cast<double>(calls);
      const ComputeCost& cost = replica.cost();
      const int64_t s = batch.source.count(), t = batch.target.count();
      const double counted = cost.forward(s, t).flops + cost.backward(s, t).flops;
      EXPECT_NEAR(counted / executed, 1, 1e-9) << tied << " " << source << " " << target;
      double pieces = 0;
      for (size_t b = 0; b < replica.strategy().buckets().size(); ++b) pieces += cost.backward(s, t, static_cast<int64_t>(b)).flops;
      EXPECT_NEAR(pieces / cost.backward(s, t).flops, 1, 1e-9);
    }
}

TEST(ComputeCost, CountsTheProductsOfAnLstmButForItsFirstStep) {
  const auto backend = make_backend("cpu:f32", 1);
  ProfiledBackend profiled(*backend);
  ModelConfig config = model_preset("gnmt-small");
  config.encoder_layers = config.decoder_layers = 3, config.width = 32, config.readout = Readout::context;
  const auto model = make_model(config, {100, 100}, profiled, 1, true);
  World world = make_local_world();
  Replica replica(*model, {}, world);
  for (const auto& [source, target] : {std::pair(40, 40), {40, 80}, {80, 40}}) {
    profiled.clear();
    const Batch batch = even_batch(source, target, 16);
    replica.step({&batch, 1});
    double executed = 0;
    for (const auto& [shape, calls] : profiled.products) executed += product_flops(shape) * static_cast<double>(calls);
    const int64_t s = batch.source.count(), t = batch.target.count();
    const double counted = replica.cost().forward(s, t).flops + replica.cost().backward(s, t).flops;
    // Forwards and for the step before's gradient the first step has no recurrent product: at most 2.5 % of these.
    EXPECT_GT(counted / executed, 1.0) << source << " " << target;
    EXPECT_LT(counted / executed, 1.02) << source << " " << target;
  }
}

}  // namespace
}  // namespace starling
