// Micro-batches follow the memory that may be used, whatever limits it, and say so.
#include "train/micro_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace starling {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kMiB = 1 << 20;
constexpr const char* kLimit = "the cgroup's limit of 500 MiB (/sys/fs/cgroup/job/memory.max)";

struct Chosen {
  int64_t tokens;
  std::vector<std::string> said;
};
// One layer a side, of width 1024 and feed-forward 4096: 2 * 4 * (13 * 1024 + 18 * 1024) bytes a token in f32, 248 KiB.
Chosen choose(int64_t mebibytes, int64_t parameters = 0, int local_ranks = 1, int64_t asked = 0) {
  Config c;
  c.model.preset = "transformer-base", c.model.width = 1024, c.model.feed_forward = 4096;
  c.model.encoder_layers = c.model.decoder_layers = 1;
  c.train.batch_tokens = 8000, c.train.micro_batch_tokens = asked;
  Chosen chosen;
  chosen.tokens = micro_batch_tokens(c, {4, parameters, local_ranks}, {mebibytes * kMiB, kLimit},
                                     [&](const std::string& line) { chosen.said.push_back(line); });
  return chosen;
}

TEST(MicroBatch, HalfOfTheUsableMemoryIsFilled) {
  const Chosen c = choose(496);
  EXPECT_EQ(c.tokens, 1024);
  EXPECT_THAT(c.said, ElementsAre("micro-batches of 1024 target tokens, chosen by memory: usable is 496 MiB, which is what " +
                                  std::string(kLimit) + " leaves"));
}

TEST(MicroBatch, WhatIsOnlyTakenLaterIsSubtracted) {
  EXPECT_EQ(choose(496 + 120, 10 << 20).tokens, 1024);  // 12 bytes a parameter
  EXPECT_EQ(choose(992, 0, 2).tokens, 1024);
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

}  // namespace
}  // namespace starling
