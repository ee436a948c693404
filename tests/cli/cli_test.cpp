// The process: its exit status, its streams and its name. What is said of right and wrong command lines: tests/program/.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/text_files.h"
#include "tests/cli/program.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Apart {
  int status;
  std::string out, err;
};

class CliTest : public ProgramTest {
 protected:
  // `out` is where standard output goes, as in a shell.
  Apart run_apart(const std::string& arguments, const std::string& out = "out") const {
    const int status = run_shell("(cd '" + directory_ + "' && exec '" STARLING_BINARY "' " + arguments + " 2>err >" + out + ")").status;
    return {status, out == "out" ? read_text_file(path("out")) : "", read_text_file(path("err"))};
  }
};

TEST_F(CliTest, KindsOfErrorsHaveStatusesOfTheirOwn) {
  for (const auto& [arguments, status, message] :
       std::vector<std::tuple<std::string, int, std::string>>{{"trian", 2, "there is no verb 'trian'; did you mean 'train'?"},
                                                              {"translate", 2, "--model is required"},
                                                              {"train -c missing.yml", 3, "missing.yml"},
                                                              {"race missing.yml", 3, "missing.yml"},
                                                              {"bench trian", 2, "did you mean 'train'?"}}) {
    const Apart o = run_apart(arguments);
    EXPECT_EQ(o.status, status) << message;
    EXPECT_EQ(o.out, "") << message;
    EXPECT_THAT(o.err, StartsWith("starling: error: "));
    EXPECT_THAT(o.err, HasSubstr(message));
  }
  const Apart help = run_apart("train --help");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("--train.batch-tokens"));
  EXPECT_EQ(help.err, "");
  EXPECT_EQ(run("").status, 2);
}

TEST_F(CliTest, ClosedAndFullOutput) {
  const Apart full = run_apart("train --dump-config full", "/dev/full");
  EXPECT_EQ(full.status, 3);
  EXPECT_THAT(full.err, HasSubstr("standard output"));
  EXPECT_EQ(run_apart("train --dump-config full", "&-").status, 0);
  const std::string command = std::string("sh -c '{ ") + STARLING_BINARY + " train --help; echo $? >&2; } 2>" + path("err") + " | true'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_TRUE(read_text_file(path("err")) == "141\n" || read_text_file(path("err")) == "0\n") << read_text_file(path("err"));
}

TEST_F(CliTest, TheProcessIsCalledStarling) {
  write("references", "a\n");
  const std::string fifo = path("hypotheses");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    unsetenv("GOMP_SPINCOUNT"), unsetenv("OMP_WAIT_POLICY");
    dup2(open("/dev/null", O_WRONLY), 1), dup2(1, 2);
    execl(STARLING_BINARY, STARLING_BINARY, "evaluate", "--hypotheses", fifo.c_str(), "--references", path("references").c_str(), nullptr);
    _exit(98);
  }
  int file = -1;  // somebody reads the other end: the program has passed its second start
  for (int i = 0; i < 2000 && (file = open(fifo.c_str(), O_WRONLY | O_NONBLOCK)) < 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(file, 0);
  EXPECT_EQ(read_text_file(fmt::format("/proc/{}/comm", pid)), "starling\n");
  EXPECT_EQ(::write(file, "a\n", 2), 2);
  close(file);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace starling
