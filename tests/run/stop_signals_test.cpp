// Which signals ask a run to stop, and which kill it.
#include "run/stop_signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace starling {
namespace {

// Returns how a process ends that gets these signals, so many seconds after each other: 128 + the signal that killed it, or the one that
// it received.
int end_after(std::initializer_list<int> signals, double seconds) {
  const pid_t child = fork();
  if (child == 0) {
    const StopSignals stop;
    for (const int signal : signals) {
      raise(signal);
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    }
    _exit(StopSignals::received());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(StopSignals, ASecondOneKills) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) EXPECT_EQ(end_after({signal}, 0), signal);
  EXPECT_EQ(end_after({SIGINT, SIGINT}, 0), 128 + SIGINT);
  EXPECT_EQ(end_after({SIGTERM, SIGTERM}, StopSignals::kOneStop + 0.1), 128 + SIGTERM);
  EXPECT_EQ(end_after({SIGHUP, SIGHUP, SIGUSR1, SIGUSR1}, 0), SIGHUP);
  EXPECT_EQ(end_after({SIGXCPU, SIGXCPU, SIGUSR2, SIGUSR2}, 0), SIGXCPU);
}

// A batch system signals a rank, its launch and its mpirun, and both pass that on.
TEST(StopSignals, OneStopMayComeSeveralTimes) {
  EXPECT_EQ(end_after({SIGTERM, SIGTERM, SIGUSR1, SIGTERM}, 0.01), SIGTERM);
  EXPECT_EQ(end_after({SIGUSR1, SIGTERM}, 0.01), SIGUSR1);
  EXPECT_EQ(end_after({SIGTERM, SIGINT}, 0.01), SIGTERM);
}

TEST(StopSignals, WhatWasIgnoredStaysIgnored) {
  const auto before = signal(SIGHUP, SIG_IGN);
  EXPECT_EQ(end_after({SIGHUP, SIGHUP}, 0), 0);
  signal(SIGHUP, before);
}

}  // namespace
}  // namespace starling
