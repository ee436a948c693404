// The synthetic batches of `starling bench train`: as many sentences or tokens as asked for, whole and sorted by length.
#include "train/bench.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace starling
