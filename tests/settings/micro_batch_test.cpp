// Micro-batches follow the memory that may be used, whatever limits it, and say so.
#include "settings/micro_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/world.h"
#include "replica/replica.h"
#include "tests/models/common.h"

namespace starling {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kOneMiB = 1 << 20;
constexpr const char* kLimit = "the cgroup's limit of 500 MiB (/sys/fs/cgroup/job/memory.max)";

struct Chosen {
  int64_t tokens;
  std::vector<std::string> said;
};
// One layer a side, of width 1024 and feed-forward 4096: 2 * 4 * (14 + 21 + 4) * 1024 bytes a token in f32, 312 KiB.
Chosen choose(int64_t mebibytes, int64_t parameters = 0, int local_ranks = 1, int64_t asked = 0) {
  Config c;
  c.model.preset = "transformer-base", c.model.width = 1024, c.model.feed_forward = 4096;
  c.model.encoder_layers = c.model.decoder_layers = 1;
  c.train.batch_tokens = 8000, c.train.micro_batch_tokens = asked;
  Chosen chosen;
  chosen.tokens = micro_batch_tokens(c, {4, parameters, local_ranks}, {mebibytes * kOneMiB, kLimit},
                                     [&](const std::string& line) { chosen.said.push_back(line); });
  return chosen;
}

TEST(MicroBatch, HalfOfTheUsableMemoryIsFilled) {
  const Chosen c = choose(624);
  EXPECT_EQ(c.tokens, 1024);
  EXPECT_THAT(c.said, ElementsAre("micro-batches of 1024 target tokens, chosen by memory: usable is 624 MiB, which is what " +
                                  std::string(kLimit) + " leaves"));
}

TEST(MicroBatch, WhatIsOnlyTakenLaterIsSubtracted) {
  EXPECT_EQ(choose(624 + 120, 10 << 20).tokens, 1024);  // 12 bytes a parameter
  EXPECT_EQ(choose(1248, 0, 2).tokens, 1024);
}

TEST(MicroBatch, EnoughMemoryIsNoNews) {
  EXPECT_EQ(choose(20000).tokens, 4096);
  EXPECT_THAT(choose(20000).said, IsEmpty());
  EXPECT_EQ(choose(10, 0, 1, 1234).tokens, 1234);
  EXPECT_THAT(choose(10, 0, 1, 1234).said, IsEmpty());
}

TEST(MicroBatch, TooLittleMemoryIsWarnedOf) {
  const Chosen c = choose(100, 20 << 20);
  EXPECT_EQ(c.tokens, 256);
  EXPECT_THAT(c.said, ElementsAre(HasSubstr("warning: memory may not suffice")));
}

// Without logits of a piece of the rows. An arena leaves up to a tenth of its first chunks unused.
TEST(MicroBatch, AStepTakesWhatIsEstimated) {
  for (const char* preset : {"transformer-tiny", "transformer-base", "gnmt-small"})
    for (const char* spec : {"cpu:f32", "cpu:bf16"}) {
      const auto backend = make_backend(spec, 1);
      ModelConfig config = model_preset(preset);
      config.encoder_layers = config.decoder_layers = 2, config.width = 256, config.feed_forward *= 256,
      config.feed_forward /= model_preset(preset).width;
      const auto model = make_model(config, {100, 100}, *backend, 3, true);
      World world = make_local_world();
      Replica replica(*model, {}, world);
      const Batch batch = random_batch(100, 100, 5, 20);
      replica.step({&batch, 1});
      const auto logits = static_cast<double>(2048 * 100 * 8);
      const double taken = static_cast<double>(replica.activation_bytes()) - logits;
      const double estimate = static_cast<double>(batch.target.count()) * bytes_per_token(config, size_of(backend->activation()), 1);
      EXPECT_GT(estimate, 0.9 * taken) << preset << " " << spec;
      EXPECT_LT(estimate, 1.7 * taken) << preset << " " << spec;
    }
}

TEST(MicroBatch, ACardThatCannotHoldTheModelIsAnErrorWithTheNumbers) {
  Config c;
  c.model.preset = "transformer-base", c.train.batch_tokens = 8000;
  MicroBatchNeed need{.activation_bytes = 2, .parameters = 100 << 20, .best = 32768, .later_bytes = 4, .card = true};
  std::vector<std::string> said;
  const auto say = [&](const std::string& line) { said.push_back(line); };
  try {
    micro_batch_tokens(c, need, {420 * kOneMiB, kLimit}, say);
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), testing::AllOf(HasSubstr("400 MiB for weights"), HasSubstr("of 256 target tokens"),
                                         HasSubstr("usable is 420 MiB"), HasSubstr("train a smaller model")));
  }
  EXPECT_EQ(micro_batch_tokens(c, need, {40000 * kOneMiB, kLimit}, say), 32768);
  EXPECT_THAT(said, IsEmpty());
  c.train.micro_batch_tokens = 5000;
  EXPECT_EQ(micro_batch_tokens(c, need, {600 * kOneMiB, kLimit}, say), 5000);
  EXPECT_THAT(said, ElementsAre(HasSubstr("warning: train.micro-batch-tokens may be too many for the card: 400 MiB for weights")));
}

}  // namespace
}  // namespace starling
