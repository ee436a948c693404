// What SentencePiece 0.1.97 prints, line by line as recorded, and what is made of it.
#include "text/vocabulary_log.h"

#include <gtest/gtest.h>

namespace starling {
namespace {

TEST(TrainerLog, FollowsUnigramTraining) {
  TrainerLog log(2000);
  EXPECT_EQ(log.fraction(), -1);
  log.add("trainer_interface.cc(427) LOG(INFO) Normalizing sentences...\ntrainer_inter");
  EXPECT_EQ(log.stage(), "SentencePiece normalises the sample");
  log.add("face.cc(536) LOG(INFO) all chars count=303284\nunigram_model_trainer.cc(146) LOG(INFO) Making suffix array...\n");
  EXPECT_EQ(log.stage(), "SentencePiece sorts the sample's suffixes");
  log.add("unigram_model_trainer.cc(201) LOG(INFO) Initialized 10647 seed sentencepieces\n");
  EXPECT_EQ(log.stage(), "SentencePiece splits the sample into words");
  EXPECT_EQ(log.fraction(), -1);
  log.add("unigram_model_trainer.cc(507) LOG(INFO) EM sub_iter=0 size=4400 obj=9.31332 num_tokens=11737 num_tokens/piece=2.705\n");
  EXPECT_EQ(log.fraction(), 0);
  EXPECT_EQ(log.stage(), "4400 candidates for 2000 pieces");
  log.add("unigram_model_trainer.cc(507) LOG(INFO) EM sub_iter=1 size=3111 obj=7.49442 num_tokens=11840 num_tokens/piece=3.26171\n");
  EXPECT_NEAR(log.fraction(), 0.5, 1e-3);  // half way from 4400 to 2200 by ratio
  log.add("unigram_model_trainer.cc(507) LOG(INFO) EM sub_iter=1 size=2199 obj=7.52388 num_tokens=13879 num_tokens/piece=6.31151\n");
  EXPECT_EQ(log.fraction(), 1);
}

TEST(TrainerLog, FollowsMerges) {
  TrainerLog log(300);
  log.add("bpe_model_trainer.cc(258) LOG(INFO) Added: freq=361 size=120 all=2964 active=1213 piece=co\n");
  EXPECT_EQ(log.fraction(), 0.4);
  EXPECT_EQ(log.stage(), "120 of 300 pieces merged");
}

TEST(TrainerLog, KeepsErrorsApart) {
  TrainerLog log(300);
  EXPECT_EQ(log.errors(), "it gave no reason");
  log.add("a.cc(1) LOG(INFO) Normalizing sentences...\nb.cc(2) [ok] died\nof it\nlast");
  EXPECT_EQ(log.errors(), "b.cc(2) [ok] died of it last");
}

}  // namespace
}  // namespace starling
