// The benchmarks: synthetic batches are as many sentences or tokens as asked for, whole and sorted by length; what is measured is there.
#include "measure/bench.h"

#include <gtest/gtest.h>

#include <cmath>

#include "measure/bench_translate.h"
#include "tests/emulated/slow.h"

namespace starling {
namespace {

TEST(SyntheticBatches, BySentences) {
  BenchTrainOptions o;
  o.batch_sentences = 128;
  const std::vector<Batch> batches = synthetic_batches(o, 4);
  ASSERT_EQ(batches.size(), 4u);
  int64_t tokens = 0;
  for (const Batch& b : batches) {
    EXPECT_EQ(b.source.sentences(), 128);
    EXPECT_EQ(b.target.sentences(), 128);
    EXPECT_GE(b.target.count(), tokens) << "longer sentences come later";
    tokens = b.target.count();
  }
}

TEST(SyntheticBatches, ByTokens) {
  BenchTrainOptions o;
  o.batch_tokens = 1000;
  const std::vector<Batch> batches = synthetic_batches(o, 4);
  ASSERT_GE(batches.size(), 4u);
  for (const Batch& b : batches) {
    EXPECT_LE(b.target.count(), 1000);
    EXPECT_GE(b.target.count(), 500);
  }
}

ModelConfig smallest() {
  ModelConfig c = model_preset("transformer-tiny");
  c.encoder_layers = c.decoder_layers = 1, c.width = 32, c.feed_forward = 64, c.heads = 2;
  return c;
}

// On emulated cards too, by the same code.
TEST(Bench, TrainingIsMeasuredAgainstTheDevicesOwnLimits) {
  BenchTrainOptions o;
  o.model = smallest(), o.vocabulary = 60, o.batch_tokens = 64, o.mean_length = 8, o.seconds = 0.01;
  o.precision = "f32", o.device = "cpu", o.threads = 1;
  const BenchTrainResult r = bench_train(o);
  EXPECT_GT(r.f32_flops, 1e6);
  EXPECT_GT(r.memory_rate, 1e6);
  EXPECT_GT(r.product_seconds, 0);
  EXPECT_GT(r.product_flops, 6 * 64 * 32 * 60);  // logits and their gradients alone
  EXPECT_GT(r.efficiency, 0);
  EXPECT_LT(r.efficiency, 1);
  EXPECT_GT(r.peak_bytes, r.parameters * 16);
  double seconds = 0;
  for (const char* op : {"linear", "weight_gradient", "attention", "adam"}) EXPECT_GT(r.profile.at(op).seconds, 0) << op;
  for (const auto& [name, time] : r.profile) seconds += time.seconds;
  EXPECT_LT(seconds, r.profiled_seconds);
  EXPECT_GT(seconds, 0.2 * r.profiled_seconds);
  if (unless_emulated(true, false)) {
    EXPECT_GT(r.optimizer_seconds, 0);
  } else {
    EXPECT_EQ(r.optimizer_seconds, 0);  // a card's work would have to be waited for
  }
  EXPECT_LT(r.optimizer_seconds, r.step_seconds);
  const int width = unless_emulated(128, 32);
  o.model.width = width, o.model.feed_forward = 4 * width;
  const double others = bench_train(o).product_flops;
  o.optimizer = OptimizerKind::muon;
  const BenchTrainResult muon = bench_train(o);
  const double squares = 4 + 8, oblongs = 2 + 2;  // of encoder and decoder: width x width, and width x 4 width
  EXPECT_NEAR((muon.product_flops - others) / (4 * (6 * squares + 18 * oblongs) * std::pow(width, 3)), 1, 1e-6);
}

TEST(Bench, TranslatingIsMeasuredAgainstItsProducts) {
  BenchTranslateOptions o;
  o.config = smallest(), o.vocabulary = 40, o.beams = {2}, o.precisions = {"f32"}, o.device = "cpu", o.threads = 1;
  for (int i = 0; i < 4; ++i) o.sources.emplace_back("a house and a tree, red and blue, see the other dogs run");
  o.output_length = 3, o.latency_sentences = 2;
  const BenchTranslateResult r = bench_translate(o);
  ASSERT_EQ(r.rows.size(), 1u);
  EXPECT_GT(r.rows[0].tokens_per_second, 0);
  EXPECT_GT(r.rows[0].latency_p95_ms, 0);
  for (const double share : {r.rows[0].product_share, r.rows[0].single_product_share}) {
    EXPECT_GT(share, 0);
    EXPECT_LT(share, 1);
  }
}

}  // namespace
}  // namespace starling
