// Training where memory is limited: micro-batches follow the limit before the first update, and are halved where what was asked for does
// not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace starling {
namespace {

using ::testing::HasSubstr;

class MemoryLimit : public ProgramTest {
 protected:
  // Two updates whose batch of 4,096 target tokens takes about 1 GiB of activations at once, with at most so many MiB of addresses.
  ShellOutcome train(int64_t mebibytes, const std::string& more = "", const std::string& launch = "") const {
    const std::string limit = mebibytes > 0 ? fmt::format("ulimit -v {}; ", mebibytes << 10) : "";
    return run_shell("cd '" + directory_ + "' && " + limit + "'" STARLING_BINARY "' " + launch +
                     "train --data.source a --data.target b --train.output run --vocab.size 40 --model.preset transformer-tiny "
                     "--model.width 32 --model.heads 2 --model.feed-forward 8192 --model.encoder-layers 2 --model.decoder-layers 2 "
                     "--train.precision f32 "
                     "--train.batch-tokens 4096 --train.max-steps 2 --train.threads 1 --log.every 1 --log.progress never " +
                     more);
  }
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers take addresses of their own";
#endif
    std::string a, b;
    for (int i = 0; i < 3000; ++i) a += fmt::format("one two three {}\n", i % 7), b += fmt::format("{} three two one\n", i % 7);
    write("a", a), write("b", b);
  }
};

// The limited runs take the vocabulary of the free one: threads that train one reserve more addresses than they use.
TEST_F(MemoryLimit, MicroBatchesFollowItAndWhatDoesNotFitIsCutSmaller) {
  const ShellOutcome free = train(0);
  EXPECT_EQ(free.status, 0) << free.text;
  EXPECT_THAT(free.text, testing::Not(HasSubstr("chosen by memory")));
  EXPECT_THAT(free.text, HasSubstr("memory, planned: program and text "));

  const ShellOutcome limited = train(1000, "--vocab.source run/vocab.spm --train.output limited");
  EXPECT_EQ(limited.status, 0) << limited.text;
  EXPECT_THAT(limited.text, HasSubstr("target tokens, chosen by memory: usable is ")) << limited.text;
  EXPECT_THAT(limited.text, HasSubstr("MiB on address space (ulimit -v) leaves"));
  EXPECT_THAT(limited.text, HasSubstr("complete: "));

  const ShellOutcome asked = train(1000, "--vocab.source run/vocab.spm --train.output asked --train.micro-batch-tokens 4096");
  EXPECT_EQ(asked.status, 0) << asked.text;
  EXPECT_THAT(asked.text, HasSubstr("warning: memory may not suffice, and the process may be killed for it: program and text "));
  EXPECT_THAT(asked.text, HasSubstr("set train.micro-batch-tokens to less than 4096"));
  EXPECT_THAT(asked.text, HasSubstr("memory ran out in the largest batch: micro-batches of 2048 target tokens from here on"));
  EXPECT_THAT(asked.text, HasSubstr("complete: "));

  if (run_shell("command -v mpirun").status != 0) return;  // Debian package openmpi-bin
  const ShellOutcome both =
      train(1100, "--vocab.source run/vocab.spm --train.output both --train.micro-batch-tokens 4096 --train.batch-tokens 8192",
            "launch -n 2 -- ");
  EXPECT_EQ(both.status, 0) << both.text;
  EXPECT_THAT(both.text, HasSubstr("memory ran out in the largest batch: micro-batches of 2048 target tokens from here on"));
  EXPECT_THAT(both.text, HasSubstr("complete: "));
}

}  // namespace
}  // namespace starling
