// Which hosts can be reached, with scripts in the place of ssh and mpirun, some of which hang as those do behind a firewall.
#include "doctor/reach.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "base/error.h"
#include "base/this_host.h"
#include "doctor/meeting.h"
#include "launch/commands.h"
#include "tests/cli/program.h"

namespace starling {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

auto tells(Level level, const std::string& what, const std::string& mend) {
  return AllOf(Field(&Finding::level, level), Field(&Finding::what, HasSubstr(what)), Field(&Finding::mend, HasSubstr(mend)));
}

class Reach : public ProgramTest {
 protected:
  ~Reach() override { unsetenv("OMPI_MCA_plm_rsh_agent"); }
  std::string script(const std::string& name, const std::string& text) const {
    write(name, "#!/bin/bash\ncd '" + directory_ + "'\n" + text + "\n");
    std::filesystem::permissions(path(name), std::filesystem::perms::owner_all);
    return path(name);
  }
  // ssh and mpirun do what these scripts do, whose first arguments are the hosts.
  Examined reach(const std::vector<std::string>& hosts, const std::string& ssh, const std::string& mpirun,
                 const ReachLimits& limits = kShort) const {
    setenv("OMPI_MCA_plm_rsh_agent", script("agent", ssh).c_str(), 1);
    const std::string start = script("mpirun", mpirun);
    const auto mpirun_for = [&](std::vector<std::string> some) {
      some.insert(some.begin(), start);
      return some;
    };
    return examine_reach(hosts, mpirun_for, limits);
  }
  JointEnd joint(const std::string& mpirun) const { return run_on_hosts({"alpha", "beta"}, {script("mpirun", mpirun)}, kShort); }
  std::string content(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Whether the process that has written its number to a file is gone.
  bool gone(const std::string& name) const {
    pid_t process = 0;
    std::ifstream(path(name)) >> process;
    EXPECT_GT(process, 0) << name;
    return kill(process, 0) != 0 && errno == ESRCH;
  }
  static double since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  static constexpr ReachLimits kShort{{1, 0.1}, {1, 0.1}, {1, 0.1}, 4, {1, 0.1}};
};

TEST_F(Reach, NothingIsLeftOfCommandsThatTakeTooLong) {
  const std::string stubborn =
      script("stubborn",
             "trap '' INT TERM HUP; setsid bash -c 'trap \"\" INT; echo $$ > session; sleep 300' & echo $$ > self; "
             "echo begun; for ((;;)); do sleep 300; done");
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<CommandEnd> ends =
      run_commands({{stubborn}, {"sleep", "300"}, {"sh", "-c", "echo here; echo there >&2; exit 7"}}, {0.5, 0.1});
  EXPECT_LT(since(begin), 8);
  EXPECT_TRUE(ends[0].late && ends[1].late);
  EXPECT_EQ(ends[0].status, 128 + SIGKILL);
  EXPECT_EQ(ends[0].output, "begun\n");
  EXPECT_EQ(ends[1].status, 128 + SIGINT);
  EXPECT_TRUE(gone("self"));
  EXPECT_TRUE(gone("session"));
  EXPECT_FALSE(ends[2].late);
  EXPECT_EQ(ends[2].status, 7);
  EXPECT_EQ(ends[2].output, "here\nthere\n");
}

TEST_F(Reach, ASignalEndsTheCommandsAndThisProcess) {
  const std::string signals = script("signals", "echo $$ > self; kill -TERM $PPID; exec sleep 300");
  EXPECT_EXIT(run_commands({{signals}}, {60, 1}), testing::KilledBySignal(SIGTERM), "");
  EXPECT_TRUE(gone("self"));
}

TEST_F(Reach, TellsWhichHostDoesNotAnswerAndHowToMendIt) {
  const auto begin = std::chrono::steady_clock::now();
  const Examined reached = reach({this_host(), "alpha", "beta", "gamma", "delta", "localhost"},
                                 "case $1 in beta) sleep 300;; gamma) echo 'gamma: Permission denied (publickey).' >&2; exit 255;;\n"
                                 "delta) echo ssh: Could not resolve hostname delta >&2; exit 255;; alpha) exit 0;; esac; echo $1 >> asked",
                                 "echo $1 >> started");
  EXPECT_LT(since(begin), 8);
  EXPECT_THAT(reached.findings,
              ElementsAre(tells(Level::fine, "ssh and mpirun reach alpha", ""),
                          tells(Level::problem, "beta: " + path("agent") + " fails: timed out after 1 s", "ssh beta true"),
                          tells(Level::problem, "gamma: Permission denied (publickey).", "ssh-copy-id gamma"),
                          tells(Level::problem, "Could not resolve hostname delta", "getent hosts delta")));
  EXPECT_FALSE(std::filesystem::exists(path("asked"))) << "this host needs no ssh";
}

// mpirun starts what has an address of this host without ssh, whatever the name.
TEST_F(Reach, OwnAddressesNeedNoSsh) { EXPECT_THAT(reach({"127.0.0.1"}, "exit 255", "exit 1").findings, IsEmpty()); }

TEST_F(Reach, TellsWhoseDaemonDoesNotReachThisHost) {
  const auto begin = std::chrono::steady_clock::now();
  const Examined reached = reach({"alpha", "beta", "gamma"}, "exit 0",
                                 "echo \"$*\" >> started\ncase \"$*\" in *beta*) echo $$ > self; sleep 300;;\n"
                                 "gamma) printf -- '-----\\nExecutable: /opt/starling\\nNode: gamma\\n'; exit 134;; esac");
  EXPECT_LT(since(begin), 8);
  EXPECT_THAT(
      reached.findings,
      ElementsAre(tells(Level::problem, "beta: answers by ssh, but Open MPI's daemon there has not reached " + this_host(), "firewalls"),
                  tells(Level::problem, "gamma: mpirun cannot start this program there: Executable: /opt/starling Node: gamma",
                        "under the same path")));
  EXPECT_EQ(content("started"), "alpha beta gamma\nalpha\nbeta\ngamma\n");
  EXPECT_TRUE(gone("self"));
}

TEST_F(Reach, LeavesHostsOutForWantOfTime) {
  ReachLimits limits = kShort;
  limits.one_by_one_s = 0.1;
  const Examined reached = reach({"alpha", "beta", "gamma"}, "exit 0", "sleep 300", limits);
  EXPECT_THAT(reached.findings, ElementsAre(tells(Level::problem, "alpha: answers by ssh, but", ""),
                                            tells(Level::note, "beta, gamma: mpirun was not tried there", "fix the others first")));
}

TEST_F(Reach, HostsMayFailOnlyTogether) {
  EXPECT_THAT(reach({"alpha", "beta"}, "exit 0", "[[ $# == 1 ]] || { echo no route; exit 1; }").findings,
              ElementsAre(tells(Level::problem, "alpha, beta: mpirun starts a process on each of them, but not on all together: no route",
                                "firewalls")));
}

TEST_F(Reach, SaysHowFarHostsCameThatHang) {
  const auto begin = std::chrono::steady_clock::now();
  testing::internal::CaptureStdout();
  const JointEnd apart = joint("echo Starling on alpha; echo $$ > self; sleep 300");
  const JointEnd slow = joint("printf 'ranks\\n  ok 2 ranks\\n'; sleep 300");
  const JointEnd fine = joint("echo all is well; exit 3");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "Starling on alpha\nranks\n  ok 2 ranks\nall is well\n");
  EXPECT_LT(since(begin), 8);
  EXPECT_THAT(apart.ended.findings, ElementsAre(tells(Level::problem, "alpha, beta: mpirun started ranks there", "firewalls")));
  EXPECT_NE(apart.status, 0);
  EXPECT_TRUE(gone("self"));
  EXPECT_THAT(slow.ended.findings, ElementsAre(tells(Level::problem, "took longer than 1 s and was stopped", "a disk there is very slow")));
  EXPECT_THAT(fine.ended.findings, IsEmpty());
  EXPECT_EQ(fine.status, 3);
}

TEST_F(Reach, NeedsMpirun) { EXPECT_THROW(run_on_hosts({"alpha"}, {path("nothing")}, kShort), ConfigError); }

// A port whose queue is full drops what asks for a connection, as a firewall does.
TEST(Meeting, KnowsWhichAddressDoesNotAnswer) {
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(server, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(server, 0), 0);
  ASSERT_EQ(getsockname(server, reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_THAT(unanswered_connections(), IsEmpty());
  std::vector<int> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    connect(clients.back(), reinterpret_cast<sockaddr*>(&address), size);
  }
  EXPECT_THAT(unanswered_connections(), testing::Contains(fmt::format("127.0.0.1, TCP port {}", ntohs(address.sin_port))));
  for (const int file : clients) close(file);
  close(server);
  EXPECT_THAT(unanswered_connections(), IsEmpty());
}

#ifdef STARLING_BINARY
TEST_F(Reach, TheVerbTellsWhatIsAmissBeforeItStartsRanks) {
  script("agent", "echo 'ssh: connect to host beta port 22: No route to host' >&2; exit 255");
  script("mpirun", "touch started");
  const ShellOutcome o = run_shell("cd '" + directory_ + "' && PATH='" + directory_ + "':$PATH OMPI_MCA_plm_rsh_agent='" + path("agent") +
                                   "' '" STARLING_BINARY "' doctor --hosts localhost:1,beta:1");
  EXPECT_EQ(o.status, 3) << o.text;
  EXPECT_THAT(o.text,
              HasSubstr("hosts\n  PROBLEM beta: " + path("agent") + " fails: ssh: connect to host beta port 22: No route to host\n"));
  EXPECT_THAT(o.text, HasSubstr("\n1 problem, 0 notes\n"));
  EXPECT_FALSE(std::filesystem::exists(path("started")));
}
#endif

}  // namespace
}  // namespace starling
