// What a command says when it is told to end: in child processes, which die of the signals.
#include "base/stop_note.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace starling {
namespace {

struct Ended {
  int signal = 0, code = -1;  // one of them
  std::string told;           // on standard error
};

Ended ended(const std::function<void()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);  // a shell makes its background jobs ignore SIGINT
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]), close(ends[1]);
    body();
    _exit(7);
  }
  close(ends[1]);
  Ended e;
  char bytes[512];
  for (ssize_t n; (n = read(ends[0], bytes, sizeof bytes)) > 0;) e.told.append(bytes, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) e.signal = WTERMSIG(status);
  if (WIFEXITED(status)) e.code = WEXITSTATUS(status);
  return e;
}

TEST(StopNote, SaysTheLatestLineAndDiesOfTheSignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Ended e = ended([&] {
      StopNote note("nothing was kept");
      note.set("the first 12 lines are kept");
      raise(signal);
    });
    EXPECT_EQ(e.signal, signal);
    EXPECT_EQ(e.told, "starling: the first 12 lines are kept\n");
  }
}

TEST(StopNote, WaitsForWhatIsBeingWritten) {
  const Ended e = ended([] {
    StopNote note("nothing was kept");
    WholeWrite write;
    raise(SIGTERM);
    write.done("out is complete");
  });
  EXPECT_EQ(e.signal, SIGTERM);
  EXPECT_EQ(e.told, "starling: out is complete\n");
}

TEST(StopNote, ASecondSignalDoesNotWait) {
  const Ended e = ended([] {
    StopNote note("nothing was kept");
    WholeWrite write;
    raise(SIGTERM);
    raise(SIGINT);
    write.done("out is complete");
  });
  EXPECT_EQ(e.signal, SIGINT);
  EXPECT_EQ(e.told, "starling: nothing was kept\n");
}

TEST(StopNote, LeavesIgnoredSignalsIgnored) {
  const Ended e = ended([] {
    ::signal(SIGHUP, SIG_IGN);
    StopNote note("nothing was kept");
    raise(SIGHUP);
  });
  EXPECT_EQ(e.code, 7);
  EXPECT_EQ(e.told, "");
}

// Standard error that nobody reads, or that has lost its reader: SIGALRM would tell of a wait, SIGPIPE of a write.
TEST(StopNote, AnswersTheSignalThoughNobodyReads) {
  for (const bool gone : {false, true}) {
    const Ended e = ended([&] {
      alarm(30);
      int ends[2];
      if (pipe2(ends, O_NONBLOCK) != 0) return;
      const std::string block(4096, 'x');
      while (write(ends[1], block.data(), block.size()) > 0) {
      }
      fcntl(ends[1], F_SETFL, 0);
      dup2(ends[1], STDERR_FILENO);
      if (gone) close(ends[0]);
      StopNote note("nothing was kept");
      raise(SIGTERM);
    });
    EXPECT_EQ(e.signal, SIGTERM) << gone;
  }
}

TEST(StopNote, GivesTheSignalsBack) {
  const Ended e = ended([] {
    { StopNote note("nothing was kept"); }
    { WholeWrite write; }
    raise(SIGTERM);
  });
  EXPECT_EQ(e.signal, SIGTERM);
  EXPECT_EQ(e.told, "");
}

}  // namespace
}  // namespace starling
