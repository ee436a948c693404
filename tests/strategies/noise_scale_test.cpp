// The noise scale against gradients whose noise is known, and against gradients that one process computes one by one.
#include "strategies/noise_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sim/simulate.h"
#include "tests/strategies/training.h"

namespace starling {
namespace {

// Tokens' gradients are drawn from a normal distribution around a mean; parts of unequal sizes, as workers' shares are.
TEST(NoiseScaleTest, IsThatOfTheDistribution) {
  std::mt19937_64 random(7);
  const int dimensions = 50;
  const double sigma = 0.8, mean = 0.02;
  const std::vector<int> parts{30, 45, 60, 65};
  std::normal_distribution<double> noise(0, sigma);
  double variance = 0, signal = 0;
  NoiseScale scale;
  const int updates = 4000;
  for (int t = 0; t < updates; ++t) {
    GradientParts sums;
    std::vector<double> whole(dimensions);
    double tokens = 0;
    for (const int b : parts) {
      double squares = 0;
      for (double& w : whole) {
        const double s = b * mean + std::sqrt(b) * noise(random);
        squares += s * s, w += s;
      }
      sums.squares += squares, sums.tokens += b, sums.tokens_squared += b * b, tokens += b;
    }
    double squares = 0;
    for (const double w : whole) squares += w * w;
    const NoiseSample sample = noise_sample(sums, squares, tokens);
    ASSERT_TRUE(sample.known);
    variance += sample.variance / updates, signal += sample.signal / updates;
    scale.add(sample);
    EXPECT_EQ(std::isnan(scale.tokens()), t + 1 < 50) << t;
  }
  EXPECT_NEAR(variance, dimensions * sigma * sigma, 0.01 * dimensions * sigma * sigma);
  EXPECT_NEAR(signal, dimensions * mean * mean, 0.05 * dimensions * mean * mean);
  EXPECT_NEAR(scale.tokens() / (sigma * sigma / (mean * mean)), 1, 0.5);
}

// A run's first gradients are ten times as long as the later ones, and agree: a run of few, large batches has to forget them soon.
TEST(NoiseScaleTest, ForgetsTheFirstUpdates) {
  NoiseScale scale;
  for (int n = 0; n < 30; ++n) scale.add({300, 100, true});
  for (int n = 0; n < 170; ++n) scale.add({3000, 1, true});
  EXPECT_NEAR(scale.tokens() / 3000, 1, 0.1);
}

// The first part against the whole, as one process measures it.
TEST(NoiseScaleTest, OnePartIsEnough) {
  const double V = 12, S = 0.3, b = 10, B = 40;
  const NoiseSample sample = noise_sample({b * V + b * b * S, b, b * b}, B * V + B * B * S, B);
  EXPECT_NEAR(sample.variance, V, 1e-12);
  EXPECT_NEAR(sample.signal, S, 1e-12);
}

TEST(NoiseScaleTest, IsUnknownWithoutParts) {
  EXPECT_FALSE(noise_sample({}, 3, 40).known);
  EXPECT_FALSE(noise_sample({3, 40, 1600}, 3, 40).known);
  EXPECT_FALSE(noise_sample({0, 40, 400}, 0, 40).known);
}

struct Measured {
  NoiseSample noise;
  double norm = 0, tokens = 0;
  std::string embeddings;
};

// One update of a tiny model by several workers on the first `sentences` of a batch.
Measured one_update(World& world, const Batch& batch, int64_t micro_tokens, const StrategyOptions& strategy) {
  const auto backend = make_backend("reference", 1);
  const auto model = make_model(small_model("transformer-tiny", "all"), {400, 400}, *backend, 3, true);
  StepOptions options;
  options.strategy = strategy;
  Replica replica(*model, options, world);
  const Batch own = slice_for_rank(batch, world.comm->rank(), world.comm->size(), 0, 1);
  std::vector<Batch> parts;
  if (own.target.count() > 0) parts = split(own, micro_tokens);
  const StepResult result = replica.step(parts);
  return {result.noise, result.gradient_norm, result.totals.tokens, replica.strategy().embedding_report()};
}

Measured alone(const Batch& batch, int64_t micro_tokens = 1000) {
  World world = make_local_world();
  return one_update(world, batch, micro_tokens, {});
}

std::vector<Measured> together(int ranks, const Batch& batch, const StrategyOptions& strategy) {
  Scenario cluster;
  cluster.ranks = ranks;
  std::vector<Measured> all(static_cast<size_t>(ranks));
  simulate(cluster, [&](World& world) { all[static_cast<size_t>(world.comm->rank())] = one_update(world, batch, 1000, strategy); });
  return all;
}

// What three single runs say of the two parts and the whole.
NoiseSample by_hand(const Measured& first, const Measured& second, const Measured& whole) {
  GradientParts parts;
  for (const Measured& m : {first, second}) {
    parts.squares += std::pow(m.norm * m.tokens, 2), parts.tokens += m.tokens, parts.tokens_squared += m.tokens * m.tokens;
  }
  return noise_sample(parts, std::pow(whole.norm * whole.tokens, 2), whole.tokens);
}

TEST(NoiseScaleTest, WorkersMeasureTheGradientsThatTheyHave) {
  const Batch batch = random_batch(3, 0, 6);
  const Measured whole = alone(batch);
  EXPECT_FALSE(whole.noise.known);
  const NoiseSample expected = by_hand(alone(slice_for_rank(batch, 0, 2, 0, 1)), alone(slice_for_rank(batch, 1, 2, 0, 1)), whole);
  ASSERT_TRUE(expected.known);
  for (const bool sharded : {false, true}) {
    StrategyOptions strategy;
    strategy.bucket_mib = 0.004, strategy.sharded_optimizer = sharded, strategy.embedding_gradients = EmbeddingGradients::dense;
    for (const Measured& m : together(2, batch, strategy)) {
      ASSERT_TRUE(m.noise.known);
      EXPECT_NEAR(m.noise.variance / expected.variance, 1, 1e-9);
      EXPECT_NEAR(m.noise.signal, expected.signal, 1e-9 * expected.variance);
    }
  }
}

// A table whose gradient is in two parts until it is added up is left out on both sides of the comparison.
TEST(NoiseScaleTest, TablesThatGoByRowsAreLeftOut) {
  const Batch batch = random_batch(3, 0, 6);
  StrategyOptions strategy;
  strategy.bucket_mib = 0.004;
  const Measured all = together(2, batch, strategy)[0];
  ASSERT_NE(all.embeddings.find("projection's part early"), std::string::npos) << all.embeddings;
  strategy.embedding_gradients = EmbeddingGradients::dense;
  const Measured dense = together(2, batch, strategy)[0];
  ASSERT_TRUE(all.noise.known);
  EXPECT_LT(all.noise.variance, dense.noise.variance);
  EXPECT_GT(all.noise.variance, 0.1 * dense.noise.variance);
  EXPECT_NEAR(all.norm / dense.norm, 1, 1e-12);
}

TEST(NoiseScaleTest, OneProcessMeasuresItsFirstMicroBatch) {
  const Batch batch = random_batch(3, 0, 6);
  const Measured whole = alone(batch), cut = alone(batch, 20);
  const std::vector<Batch> parts = split(batch, 20);
  ASSERT_GT(parts.size(), 1u);
  const Measured first = alone(parts[0]);
  const NoiseSample expected = noise_sample({std::pow(first.norm * first.tokens, 2), first.tokens, first.tokens * first.tokens},
                                            std::pow(whole.norm * whole.tokens, 2), whole.tokens);
  ASSERT_TRUE(cut.noise.known);
  EXPECT_NEAR(cut.noise.variance / expected.variance, 1, 1e-9);
  EXPECT_NEAR(cut.noise.signal, expected.signal, 1e-9 * expected.variance);
}

}  // namespace
}  // namespace starling
