// The advice about warm-ups that are too long for a small corpus.
#include "train/small_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace starling {
namespace {

using testing::HasSubstr;

TEST(SmallCorpus, AWarmUpOfManyEpochsIsNamed) {
  Config config;
  config.train.optimizer.warmup = 1000;
  const std::string advice = small_corpus_advice(config, 29000, 238);
  EXPECT_THAT(advice, HasSubstr("29000 pairs are few: about 238 updates an epoch, so that the warm-up of 1000 updates is 4.2 epochs"));
  EXPECT_THAT(advice,
              HasSubstr("try --model.preset transformer-small --train.batch-tokens 2000 --train.warmup 400 --train.learning-rate 2e-3"));
}

TEST(SmallCorpus, WhatIsSmallAlreadyStaysAsItIs) {
  Config config;
  config.model = model_preset("transformer-tiny"), config.train.batch_tokens = 1000, config.train.optimizer.warmup = 4000;
  EXPECT_THAT(small_corpus_advice(config, 29000, 476), HasSubstr("try --train.warmup 400 --train.learning-rate 2e-3"));
}

TEST(SmallCorpus, WhatIsAdvisedIsNotAdvisedAgain) {
  Config config;
  config.train.optimizer.warmup = 400;
  EXPECT_EQ(small_corpus_advice(config, 29000, 238), "");
}

TEST(SmallCorpus, OtherRunsAreLeftInPeace) {
  Config config;
  EXPECT_NE(small_corpus_advice(config, 29000, 238), "");
  EXPECT_EQ(small_corpus_advice(config, 100000, 238), "") << "not small";
  Config tuned = config;
  tuned.train.initial_model = "model";
  EXPECT_THAT(small_corpus_advice(tuned, 29000, 238), HasSubstr("for fine-tuning try --train.warmup 200 --train.learning-rate 1e-4"));
  Config recurrent = config;
  recurrent.model = model_preset("gnmt-small");
  EXPECT_EQ(small_corpus_advice(recurrent, 29000, 238), "");
  Config counted = config;
  counted.train.warmup_tokens = 1000000;
  EXPECT_EQ(small_corpus_advice(counted, 29000, 238), "");
}

}  // namespace
}  // namespace starling
