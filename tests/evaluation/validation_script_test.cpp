// Scripts that score translations: what they print, and what happens when they do not.
#include "evaluation/validation_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "tests/own_directory.h"

namespace starling {
namespace {

using testing::HasSubstr;

double score(const std::string& command, const std::vector<std::string>& arguments = {}) {
  const ScriptResult result = run_validation_script(command, arguments, 10);
  EXPECT_TRUE(result.score) << result.complaint;
  return result.score.value_or(-1);
}
std::string complaint(const std::string& command, double seconds = 10, const std::function<bool()>& stop = {}) {
  const ScriptResult result = run_validation_script(command, {}, seconds, stop);
  EXPECT_FALSE(result.score) << *result.score;
  return result.complaint;
}

TEST(ValidationScript, TheNumberAtTheEndOfTheLastLineCounts) {
  EXPECT_EQ(score("echo 31.25 #"), 31.25);
  EXPECT_EQ(score("printf 'loading\\nfile.txt\\tscore: 0.8123\\n\\n' #"), 0.8123);
  EXPECT_EQ(score("printf 'BLEU=-1e-3' #"), -1e-3);
  EXPECT_EQ(score("printf +7 #"), 7);
}

TEST(ValidationScript, GetsItsFilesAsArguments) {
  EXPECT_EQ(score("test \"$2\" = 'b c' && echo $# #", {"a", "b c", "d'"}), 3);
  const OwnDirectory directory;
  const std::string path = directory.file("lines.txt");
  std::ofstream(path) << "one\ntwo\n";
  EXPECT_EQ(score("wc -l <\"$1\" #", {path}), 2);
  EXPECT_EQ(score("wc -c #"), 0) << "there is nothing to read";
}

TEST(ValidationScript, SaysWhyThereIsNoNumber) {
  EXPECT_THAT(complaint("exit 3 #"), HasSubstr("status 3"));
  EXPECT_THAT(complaint("nosuchcommand"), HasSubstr("status 127"));
  EXPECT_THAT(complaint("echo 5; kill -TERM $$ #"), HasSubstr("signal 15"));
  for (const char* prints : {"true #", "echo nan #", "echo 5 points #", "echo 1e999 #"})
    EXPECT_THAT(complaint(prints), HasSubstr("does not end with a number")) << prints;
}

TEST(ValidationScript, EndsWithAllThatItStarted) {
  const auto begin = std::chrono::steady_clock::now();
  const OwnDirectory directory;
  const std::string path = directory.file("late.txt");
  EXPECT_THAT(complaint("(sleep 2; echo late >" + path + ") & sleep 60; echo 5 #", 0.3), HasSubstr("was killed"));
  EXPECT_THAT(complaint("sleep 60; echo 5 #", 60, [&] { return std::chrono::steady_clock::now() - begin > std::chrono::seconds(1); }),
              HasSubstr("interrupted"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(score("(sleep 60) & echo 4 #"), 4) << "what it leaves behind is not waited for";
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  EXPECT_FALSE(std::ifstream(path).good());
}

// What has left the script's process group, its session and its parent is ended too, whether the script is killed or ends by itself.
TEST(ValidationScript, EndsWhatRunsInSessionsOfItsOwn) {
  const OwnDirectory directory;
  const std::string path = directory.file("processes.txt");
  const std::string daemon = "setsid sh -c 'echo $$ >>" + path + "; exec sleep 300' & ";
  EXPECT_THAT(complaint(daemon + daemon + "sleep 1; sleep 60; echo 5 #", 1.5), HasSubstr("was killed"));
  EXPECT_EQ(score("for i in 1 2 3 4 5 6 7 8; do (" + daemon + ") ; done; sleep 1; echo 5 #"), 5);
  std::ifstream file(path);
  int count = 0;
  for (pid_t process; file >> process; ++count) {
    std::ifstream status("/proc/" + std::to_string(process) + "/stat");  // it may still be there as what nobody has waited for
    std::string number, name, state;
    EXPECT_TRUE(!(status >> number >> name >> state) || state == "Z" || name != "(sleep)") << process << state;
  }
  EXPECT_EQ(count, 10);
}

TEST(ValidationScript, MuchOutputIsNoMatter) { EXPECT_EQ(score("head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; echo 6 #"), 6); }

}  // namespace
}  // namespace starling
