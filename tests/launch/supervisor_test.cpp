// `starling launch --restarts` with a stand-in for mpirun: a script whose nth start does what the test says.
#include <gmock/gmock.h>

#include <chrono>

#include "tests/cli/program.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;

class Supervisor : public ProgramTest {
 protected:
  // starts: commands of the shell, of the first start, the second and so on; the last one is that of all further ones.
  ShellOutcome launch(const std::vector<std::string>& starts, const std::string& options, const std::string& environment = "",
                      const std::string& keys = "") {
    std::string script = "#!/bin/bash\ncd '" + directory_ + "'\nprintf '%s ' \"$@\" >> arguments\nn=$(cat count 2>/dev/null || echo 0)\n" +
                         "echo $((n + 1)) > count\ncase $n in\n";
    for (size_t i = 0; i < starts.size(); ++i) script += (i + 1 < starts.size() ? std::to_string(i) : "*") + ") " + starts[i] + ";;\n";
    write("mpirun", script + "esac\n");
    std::filesystem::permissions(path("mpirun"), std::filesystem::perms::owner_all);
    return run_shell("cd '" + directory_ + "' && env -u SLURM_JOB_ID PATH='" + directory_ + "':$PATH " + environment +
                     " '" STARLING_BINARY "' launch " + options + " -- train --train.output run " + keys);
  }
  std::string content(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string save(int step) { return fmt::format("mkdir -p run/checkpoints/step-{:08}", step); }
};

TEST_F(Supervisor, ContinuesAfterALostRank) {
  const ShellOutcome o = launch({save(10) + "; exit 5", save(20) + "; kill -9 $$", save(30)}, "-n 2 --restarts 5 --restart-pause 0.1s");
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_EQ(content("count"), "3\n");
  EXPECT_THAT(o.text, HasSubstr("starling: launch: ended (a rank was lost); restart 1 of 5 in 0.1 s, from the checkpoint of update 10\n"));
  EXPECT_THAT(o.text, HasSubstr("starling: launch: ended (signal 9); restart 2 of 5 in 0.1 s, from the checkpoint of update 20\n"));
}

TEST_F(Supervisor, GivesUpWithoutProgress) {
  const ShellOutcome o = launch({save(10) + "; exit 1"}, "-n 2 --restarts 50 --restart-pause 0.01s");
  EXPECT_EQ(o.status, 1);
  EXPECT_EQ(content("count"), "4\n");
  EXPECT_THAT(o.text, HasSubstr("not started again: status 1; 3 starts in a row have made no newer checkpoint than that of update 10"));
}

TEST_F(Supervisor, DoesNotRepeatWhatIsRefusedOrStopped) {
  EXPECT_EQ(launch({"exit 2"}, "-n 2 --restarts 50").status, 2);
  EXPECT_EQ(content("count"), "1\n");
  std::filesystem::remove(path("count"));
  EXPECT_EQ(launch({"trap 'exit 138' USR1; kill -TERM $PPID; sleep 1"}, "-n 2 --restarts 50").status, 143);
  EXPECT_EQ(content("count"), "1\n");
  EXPECT_EQ(launch({"exit 5"}, "-n 2").status, 5);
}

TEST_F(Supervisor, LeavesOutHostsThatDoNotAnswer) {
  write("agent", "#!/bin/bash\necho \"$@\" >> asked\n[[ \" $* \" != *' beta '* ]]\n");
  std::filesystem::permissions(path("agent"), std::filesystem::perms::owner_all);
  const ShellOutcome o = launch({save(10) + "; exit 5", "exit 0"}, "--hosts alpha:2,beta:2,gamma:1 --restarts 1 --restart-pause 0s",
                                "OMPI_MCA_plm_rsh_agent='" + path("agent") + "'");
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("starling: launch: beta does not answer and is left out\n"));
  EXPECT_THAT(content("arguments"), HasSubstr("-n 5 --host alpha:2,beta:2,gamma:1 "));
  EXPECT_THAT(content("arguments"), HasSubstr("-n 3 --host alpha:2,gamma:1 "));
}

TEST_F(Supervisor, ASignalWhileHostsAreAskedEndsTheRun) {
  write("agent", "#!/bin/bash\nkill -TERM $PPID\nsleep 30\n");
  std::filesystem::permissions(path("agent"), std::filesystem::perms::owner_all);
  const ShellOutcome o =
      launch({"exit 5"}, "--hosts alpha:2 --restarts 1 --restart-pause 0s", "OMPI_MCA_plm_rsh_agent='" + path("agent") + "'");
  EXPECT_EQ(o.status, 143) << o.text;
  EXPECT_EQ(content("count"), "1\n");
}

TEST_F(Supervisor, ASignalEndsThePauseAndTheRun) {
  const auto begin = std::chrono::steady_clock::now();
  const ShellOutcome o = launch({"(sleep 0.5; kill -TERM $PPID) >/dev/null 2>&1 & exit 5"}, "-n 2 --restarts 5 --restart-pause 60s");
  EXPECT_EQ(o.status, 143) << o.text;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(content("count"), "1\n");
}

// mpirun itself would end its ranks a second after SIGTERM. What launch asks of it in its place, it passes on to ranks on other hosts.
TEST_F(Supervisor, ASignalToMpirunIsPassedOnToTheRanks) {
  const ShellOutcome o =
      launch({"trap 'exit 143' USR1; kill -TERM $$; for ((i = 0; i < 300; ++i)); do sleep 0.1; done"}, "-n 2 --restarts 5");
  EXPECT_EQ(o.status, 143) << o.text;
  EXPECT_EQ(content("count"), "1\n");
}

// Slurm at the end of a job's time, and systemd, signal all of its processes.
TEST_F(Supervisor, OneStopMaySignalLaunchTwice) {
  const std::string again = "kill -TERM $PPID; kill -HUP $PPID; for ((i = 0; i < 8; ++i)); do sleep 0.2; done; exit 143";
  const ShellOutcome o = launch({"trap '" + again + "' USR1; trap 'exit 99' INT; kill -TERM $PPID; sleep 1"}, "-n 2");
  EXPECT_EQ(o.status, 143) << o.text;
}

TEST_F(Supervisor, RanksDoNotOutliveMpirun) {
  const std::string rank = "sleep 15 2>/dev/null | '" STARLING_BINARY "' evaluate --references /dev/null --hypotheses /dev/stdin & ";
  const auto begin = std::chrono::steady_clock::now();
  const ShellOutcome o = launch({rank + "sleep 1.5; kill -9 $$"}, "-n 2");
  EXPECT_EQ(o.status, 137) << o.text;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(13));
  EXPECT_THAT(o.text, HasSubstr("mpirun has ended, but ranks of this host have not; killing them"));
}

// A model on two ranks continues on two of the three that are left.
TEST_F(Supervisor, WhatIsLeftOfTheRanksIsWholeReplicas) {
  write("agent", "#!/bin/bash\n[[ \" $* \" != *' beta '* ]]\n");
  std::filesystem::permissions(path("agent"), std::filesystem::perms::owner_all);
  const ShellOutcome o = launch({save(10) + "; exit 5", "exit 0"}, "--hosts alpha:3,beta:1 --restarts 1 --restart-pause 0s",
                                "OMPI_MCA_plm_rsh_agent='" + path("agent") + "'", "--parallel.pipeline 2");
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(content("arguments"), HasSubstr("-n 4 --host alpha:3,beta:1 "));
  EXPECT_THAT(content("arguments"), HasSubstr("-n 2 --host alpha:3 "));
}

// As when the text has a line that cannot be read: the start takes its directory away again.
TEST_F(Supervisor, ARunWithoutADirectoryIsGivenUp) {
  const ShellOutcome o = launch({"exit 3"}, "-n 2 --restarts 50 --restart-pause 0.01s");
  EXPECT_EQ(o.status, 3);
  EXPECT_THAT(o.text, HasSubstr("3 starts in a row have made no checkpoint"));
}

// mpirun that hears no signal is killed after the grace and what it needs to end.
TEST_F(Supervisor, NothingOutlastsTheGrace) {
  const auto begin = std::chrono::steady_clock::now();
  const ShellOutcome o = launch({"trap '' USR1 INT; kill -TERM $PPID; echo $$ > pid; for ((i = 0; i < 600; ++i)); do sleep 0.1; done"},
                                "-n 2 --grace 1s --restarts 3");
  EXPECT_EQ(o.status, 137) << o.text;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_THAT(o.text, HasSubstr("the ranks have not ended within 1 s (--grace): they are ended now"));
  EXPECT_THAT(o.text, Not(HasSubstr("restart 1")));
  EXPECT_EQ(content("count"), "1\n");
}

// As when the network to another host is cut: mpirun waits for the daemon there.
TEST_F(Supervisor, AnMpirunThatStaysWithoutRanksIsEnded) {
  const std::string rank = "sleep 1.5 | '" STARLING_BINARY "' evaluate --references /dev/null --hypotheses /dev/stdin; ";
  const auto begin = std::chrono::steady_clock::now();
  const ShellOutcome o = launch({rank + "for ((i = 0; i < 600; ++i)); do sleep 0.1; done"}, "-n 2");
  EXPECT_EQ(o.status, 5) << o.text;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_THAT(o.text, HasSubstr("the ranks of this host have ended, but mpirun has not"));
}

TEST_F(Supervisor, OnlyTrainingContinues) {
  const ShellOutcome o = run_shell("'" STARLING_BINARY "' launch -n 2 --restarts 3 -- race recipe.yml");
  EXPECT_EQ(o.status, 2);
  EXPECT_THAT(o.text, HasSubstr("--restarts: 'race' cannot be continued from checkpoints; only train can"));
  EXPECT_THAT(run_shell("'" STARLING_BINARY "' launch -n 2 --restarts 3 -- train --train.ouptut x").text, HasSubstr("did you mean"));
}

}  // namespace
}  // namespace starling
