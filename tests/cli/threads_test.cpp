// A system that gives no thread: a limit on processes, or here stacks larger than the address space. Nothing crashes or blames the text,
// and nothing is left on disk.
#include <gmock/gmock.h>

#include "tests/cli/directory_hash.h"
#include "tests/cli/program.h"

namespace starling {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class NoThreads : public ProgramTest {
 protected:
  ShellOutcome refused(const std::string& arguments) const {
    return run_shell("cd '" + directory_ + "' && ulimit -s 274877906944 && exec '" STARLING_BINARY "' " + arguments);
  }
};

TEST_F(NoThreads, AreToldWithTheRemedyAndLeaveNothing) {
  if (run_shell("ulimit -s 274877906944").status != 0) GTEST_SKIP() << "stacks are limited here";
  write_counting();
  const std::string train =
      "train --data.source a --data.target b --train.output run --model.preset transformer-tiny --model.width 16 --model.heads 2 "
      "--vocab.size 30 --train.max-steps 2 --train.batch-tokens 100 --train.threads 1";
  const std::string before = directory_hash(directory_);
  ShellOutcome outcome = refused(train);
  EXPECT_EQ(outcome.status, 2) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("computing thread 2 of 17 cannot be started: Resource temporarily unavailable"),
                                  HasSubstr("allow more processes (ulimit -u, the container's pids.max)")));
  EXPECT_EQ(directory_hash(directory_), before);
  ASSERT_EQ(run(train).status, 0);
  const std::string trained = directory_hash(directory_);
  outcome = refused("translate -m run -i a -o translated --threads 1");
  EXPECT_EQ(outcome.status, 2) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("a thread for reading lines cannot be started"));
  EXPECT_EQ(directory_hash(directory_), trained);
}

}  // namespace
}  // namespace starling
