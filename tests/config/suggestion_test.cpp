// What a mistyped name was meant to be; that nothing is suggested where nothing is near.
#include "config/suggestion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace starling {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Closest, SuggestsOnlyWhatIsNear) {
  EXPECT_EQ(closest("batch_tokens", {"batch-tokens", "micro-batch-tokens"}), "batch-tokens");
  EXPECT_EQ(closest("tarin", {"train", "translate"}), "train");
  EXPECT_EQ(closest("xyz", {"train", "translate"}), "");
  EXPECT_EQ(closest("", {"a"}), "");
  EXPECT_EQ(closest(std::string(1 << 20, 'a'), {"a"}), "");
}

TEST(Closest, SectionsDoNotMakeKeysNear) {
  EXPECT_THAT(nearest("train.lr", {"train.ema", "train.seed"}), IsEmpty());
  EXPECT_THAT(nearest("--train.xy", {"--train.ema", "--train.output"}), IsEmpty());
  EXPECT_THAT(nearest("train.batch-token", {"train.batch-tokens", "valid.batch-tokens"}), ElementsAre("train.batch-tokens"));
  EXPECT_THAT(nearest("train.preset", {"train.precision", "model.preset"}), ElementsAre("model.preset"));
  EXPECT_THAT(nearest("tarin.seed", {"train.seed", "train.ema"}), ElementsAre("train.seed"));
}

TEST(Closest, WordsOfTheKeyAreLookedFor) {
  EXPECT_THAT(nearest("train.steps", {"train.max-steps", "train.clip-steps", "train.warmup"}),
              ElementsAre("train.max-steps", "train.clip-steps"));
  EXPECT_THAT(nearest("smoothing", {"train.label-smoothing", "train.seed"}), ElementsAre("train.label-smoothing"));
  EXPECT_THAT(nearest("model.layer-encoder", {"model.encoder-layers", "model.decoder-layers"}), ElementsAre("model.encoder-layers"));
  EXPECT_THAT(nearest("--ref", {"--references", "--hypotheses"}), ElementsAre("--references"));
  EXPECT_THAT(nearest("--re", {"--references", "--hypotheses"}), IsEmpty());
  EXPECT_THAT(nearest("batch-size", {"vocab.size", "train.batch-tokens"}), IsEmpty());
}

TEST(Closest, EquallyNearOnesAreAllNamedUpToThree) {
  EXPECT_THAT(nearest("every", {"valid.every", "log.every", "checkpoint.every"}),
              ElementsAre("valid.every", "log.every", "checkpoint.every"));
  EXPECT_THAT(nearest("every", {"a.every", "b.every", "c.every", "d.every"}), IsEmpty());
  EXPECT_EQ(did_you_mean("every", {"valid.every", "log.every"}), "; did you mean 'valid.every' or 'log.every'?");
  EXPECT_THAT(nearest("thread", {"--train.threads", "--threads"}), ElementsAre("--threads"));
}

}  // namespace
}  // namespace starling
