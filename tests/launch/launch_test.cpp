// The command line that `starling launch` makes of its options, by --dry-run.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "base/affinity.h"
#include "tests/cli/program.h"

namespace starling {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// `environment` comes before the program: "NAME=value ".
ShellOutcome launch(const std::string& arguments, const std::string& environment = "") {
  return run_shell("env -u SLURM_JOB_ID -u SLURM_NTASKS " + environment + " '" STARLING_BINARY "' launch --dry-run " + arguments);
}

const std::string kProgram = STARLING_BINARY;

using LaunchHosts = ProgramTest;

TEST(Launch, KeepsTheProgramsArgumentsInOrder) {
  const ShellOutcome o = launch("-n 2 -- train -c 'my run.yml' --train.seed=3 -n 5 --bind none");
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, StartsWith("mpirun -n 2 --host localhost:2 "));
  EXPECT_THAT(o.text, EndsWith(kProgram + " train -c 'my run.yml' --train.seed=3 -n 5 --bind none\n"));
  EXPECT_EQ(o.text.find("--allow-run-as-root") != std::string::npos, geteuid() == 0) << o.text;
}

TEST(Launch, GivesListsAndEmptyValuesOnAsTheyAre) {
  EXPECT_THAT(launch("-n 2 -- train --valid.metrics '[bleu, ter]' --a '[]' --b= --c ''").text,
              EndsWith(kProgram + " train --valid.metrics '[bleu, ter]' --a '[]' --b= --c ''\n"));
  EXPECT_THAT(launch("-n 2 other -- train").text, HasSubstr("unexpected argument"));
}

TEST(Launch, TakesARankForEachCore) {
  EXPECT_THAT(launch("-- train").text, StartsWith(fmt::format("mpirun -n {} --host localhost:{} ", usable_cores(), usable_cores())));
}

TEST(Launch, BindsOnlyWhereCoresSuffice) {
  const int cores = usable_cores();
  const std::string many = launch(fmt::format("-n {} -- train", cores + 1)).text;
  EXPECT_THAT(many, HasSubstr("--oversubscribe --bind-to none"));
  EXPECT_THAT(launch(fmt::format("-n {} --bind core -- train", cores + 1)).text, HasSubstr("--bind core needs a core for each rank"));
  const std::string all = launch(fmt::format("-n {} --bind core -- train", cores)).text;
  EXPECT_THAT(all, HasSubstr("--map-by slot:PE=1 --bind-to hwthread"));
  EXPECT_THAT(all, Not(HasSubstr("--oversubscribe")));
  EXPECT_THAT(launch(fmt::format("-n {} --bind none -- train", cores)).text, HasSubstr("--bind-to none"));
}

TEST(Launch, SeveralHosts) {
  const std::string text = launch("--hosts alpha:3,beta -- train", "STARLING_DATA=/d OMP_NUM_THREADS=2").text;
  EXPECT_THAT(text, StartsWith("mpirun -n 4 --host alpha:3,beta:1 --bind-to none "));
  EXPECT_THAT(text, HasSubstr(" -x OMP_NUM_THREADS -x STARLING_DATA "));
  EXPECT_THAT(launch("-n 5 --hosts alpha:3,beta -- train").text, HasSubstr(" --oversubscribe "));
  // mpirun adds blanks to the names of hosts.
  EXPECT_THAT(launch("--hosts ' localhost:1, localhost:1 ,beta ' -- train").text, StartsWith("mpirun -n 3 --host localhost:2,beta:1 "));
  EXPECT_THAT(launch("--hosts a --hostfile b -- train").text, HasSubstr("--hosts and --hostfile were both given"));
  const std::string long_name(254, 'a');  // longer names than there are: mpirun does not survive some of them
  EXPECT_EQ(launch(fmt::format("--hosts {} -- train", long_name.substr(1))).status, 0);
  for (const std::string wrong : {"a:x", ":2", "a:0", "a:", ",", "a:2:3", "a b", "me@a", "^a", "-a", "", long_name.c_str()}) {
    const ShellOutcome o = launch(fmt::format("--hosts '{}' -- train", wrong));
    EXPECT_EQ(o.status, 2) << wrong;
    EXPECT_THAT(o.text, HasSubstr("--hosts")) << wrong;
  }
}

// What mpirun would answer with pages about itself. The lists that are right are what mpirun makes of such files.
TEST_F(LaunchHosts, AreReadFromAFileBeforeMpirunSeesIt) {
  const auto with = [&](const std::string& text) {
    write("hosts", text);
    return launch("--hostfile " + path("hosts") + " -- train");
  };
  EXPECT_THAT(with("# my hosts\r\nalpha slots=2\r\n\r\n").text, StartsWith("mpirun -n 2 --host alpha:2 --bind-to none "));
  EXPECT_THAT(with("\xef\xbb\xbf"
                   "alpha slots = 3 # the large one\n\n\tbeta\tslots=1")
                  .text,
              StartsWith("mpirun -n 4 --host alpha:3,beta:1 "));
  EXPECT_THAT(with("alpha\nbeta\nalpha\n").text, StartsWith("mpirun --host 'alpha:2,beta:*' "));
  EXPECT_THAT(launch("-n 5 --hostfile " + path("hosts") + " -- train").text, StartsWith("mpirun -n 5 --host 'alpha:2,beta:*' --bind-to"));
  const std::pair<const char*, const char*> wrong[] = {{"alpha slots=0\n", ":1: slots takes one number, 1 to 9999, not '0'"},
                                                       {"alpha\nbeta slots\n", ":2: slots takes one number"},
                                                       {"alpha slots=two\n", "not 'two'"},
                                                       {"alpha 2\n", ":1: unknown option '2' after the name of a host"},
                                                       {"alpha:2\n", "'alpha:2' is not a valid host name; write HOST or HOST slots=N"},
                                                       {"alpha slots=1\nalpha slots=2\n", ":2: 'alpha' is named a second time"},
                                                       {"alpha\nalpha slots=2\n", ":2: 'alpha' is named a second time"},
                                                       {"alpha max-slots=2\n", "unknown option 'max-slots' after the name of a host"},
                                                       {"# nobody\r\n", "names no host"}};
  for (const auto& [text, said] : wrong) {
    const ShellOutcome o = with(text);
    EXPECT_EQ(o.status, 2) << text << o.text;
    EXPECT_THAT(o.text, AllOf(HasSubstr(path("hosts")), HasSubstr(said))) << text;
    EXPECT_EQ(std::count(o.text.begin(), o.text.end(), '\n'), 1) << o.text;
  }
  const ShellOutcome missing = launch("--hostfile " + path("none") + " -- train");
  EXPECT_EQ(missing.status, 3);
  EXPECT_THAT(missing.text, AllOf(HasSubstr(path("none")), HasSubstr("No such file")));
  EXPECT_EQ(launch("--hostfile " + directory_ + " -- train").status, 3);
}

TEST(Launch, LeavesASlurmJobToSlurm) {
  const std::string slurm = "SLURM_JOB_ID=17 SLURM_NTASKS=8";
  const std::string text = launch("-- train", slurm).text;
  EXPECT_THAT(text, StartsWith("mpirun -n 8 "));
  EXPECT_THAT(text, Not(HasSubstr("--bind-to")));
  EXPECT_THAT(launch("-n 3 -- train", slurm).text, StartsWith("mpirun -n 3 "));
}

TEST(Launch, MoreArgumentsComeLast) {
  EXPECT_THAT(launch("-n 1 --mpirun-args '--bind-to socket  -x A' -- train").text,
              EndsWith(" --bind-to socket -x A " + kProgram + " train\n"));
}

TEST(Launch, SaysWhatIsWrong) {
  for (const auto& [arguments, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", "there is no verb to launch; write for example: starling launch -n 2 -- train -c run.yml"},
           {"-n 2 train", "write -- before the verb"},
           {"-n 2 train -c x", "write -- before the verb"},
           {"-n 2 -- trian", "there is no verb 'trian'; did you mean 'train'?"},
           {"-n 2 -- launch -n 2 -- train", "launch does not launch itself"},
           {"--hots a -- train", "there is no option '--hots'; did you mean '--hosts'?"},
           {"--bind cores -- train", "'cores' is not allowed; choose core or none"},
           {"-n 0 -- train", "--ranks"}}) {
    const ShellOutcome o = launch(arguments);
    EXPECT_EQ(o.status, 2) << arguments;
    EXPECT_THAT(o.text, HasSubstr(message)) << arguments;
  }
}

TEST(Launch, NamesThePackageOfMpirun) {
  const std::string command = "PATH=/nonexistent '" + kProgram + "' launch -n 2 -- train 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  char line[1000] = {};
  EXPECT_TRUE(fgets(line, sizeof line, pipe));
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), 2);
  EXPECT_THAT(line, HasSubstr("apt-get install openmpi-bin"));
}

// All ranks of a host meet the same mistake.
TEST(Launch, OneMistakeIsToldOnce) {
  if (run_shell("command -v mpirun").status != 0) GTEST_SKIP() << "mpirun is not installed (Debian package openmpi-bin)";
  // Found before the ranks have met, and after.
  for (const auto& [arguments, message] : {std::pair("--lr 3", "there is no option '--lr'"), {"--train.output x", "no training corpus"}}) {
    const ShellOutcome o = run_shell(fmt::format("'" STARLING_BINARY "' launch -n 2 -- train {}", arguments));
    EXPECT_EQ(o.status, 2) << o.text;
    const size_t first = o.text.find("starling: error: ");
    ASSERT_NE(o.text.find(message), std::string::npos) << o.text;
    EXPECT_EQ(o.text.find("starling: error", first + 1), std::string::npos) << o.text;
  }
}

}  // namespace
}  // namespace starling
