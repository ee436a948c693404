// Ctrl-C and SIGTERM while verbs work: they end at once, as these signals end a program, with a line of what was kept and how to go on.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "base/text_files.h"
#include "tests/cli/program.h"
#include "tests/serve/fixture_model.h"

namespace starling {
namespace {

using testing::HasSubstr;

class StopTest : public ProgramTest {
 protected:
  ~StopTest() override {
    if (pid_ > 0) kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
    if (pipe_ >= 0) close(pipe_);
  }
  // Starts the program; what it says goes to the file "told".
  void start(const std::string& arguments) {
    pid_ = fork();
    if (pid_ != 0) return;
    const std::string command = "cd '" + directory_ + "' && exec '" STARLING_BINARY "' " + arguments + " >told 2>&1 </dev/null";
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(98);
  }
  // Opens a named pipe that the program reads, once it does.
  void open_pipe(const std::string& name) {
    await([&] { return (pipe_ = open(path(name).c_str(), O_WRONLY | O_NONBLOCK)) >= 0; });
  }
  void await(const std::function<bool()>& condition) {
    for (int i = 0; i < 6000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(condition()) << told();
  }
  std::string told() const { return std::filesystem::exists(path("told")) ? read_text_file(path("told")) : ""; }
  // What it says when it is told to end; it must die of the signal.
  std::string stop(int signal = SIGTERM) {
    kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status << told();
    return told();
  }

  pid_t pid_ = 0;
  int pipe_ = -1;
};

TEST_F(StopTest, TranslateNamesThePartialResult) {
  ASSERT_EQ(mkfifo(path("lines").c_str(), 0600), 0);
  start("translate --model " + kModel + " --input lines --output out");
  open_pipe("lines");
  ASSERT_EQ(::write(pipe_, "a\nb\n", 4), 4);
  await([&] { return std::filesystem::exists(path("out.partial")) && std::filesystem::file_size(path("out.partial")) > 0; });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const std::string lines = read_text_file(path("out.partial")), text = stop();
  const auto count = std::count(lines.begin(), lines.end(), '\n');
  EXPECT_THAT(text,
              HasSubstr(fmt::format("starling: stopped after {} line{}, whose translations are in out.partial; to continue, pass the lines "
                                    "from {} on, or start over with the same command\n",
                                    count, count == 1 ? "" : "s", count + 1)));
  EXPECT_EQ(read_text_file(path("out.partial")), lines);
  EXPECT_FALSE(std::filesystem::exists(path("out")));
}

TEST_F(StopTest, TranslateSaysThatThereIsNothingYet) {
  ASSERT_EQ(mkfifo(path("lines").c_str(), 0600), 0);
  start("translate --model " + kModel + " --input lines --output out");
  open_pipe("lines");
  EXPECT_EQ(stop(SIGINT), "starling: stopped before there were translations; the same command begins again\n");
}

TEST_F(StopTest, EvaluateSaysThatNoScoreIsComplete) {
  write("references", "a\n");
  ASSERT_EQ(mkfifo(path("hypotheses").c_str(), 0600), 0);
  start("evaluate --hypotheses hypotheses --references references");
  open_pipe("hypotheses");
  EXPECT_EQ(stop(SIGINT), "starling: stopped: no score is complete; the same command begins again\n");
}

TEST_F(StopTest, PlanIsAnsweredWhileItMeasures) {
  start("plan --workers 8 --model.preset transformer-big");
  await([&] { return told().find("measuring computing rates") != std::string::npos; });
  EXPECT_THAT(stop(), HasSubstr("starling: stopped: nothing was written; "));
}

// Two settings of thousands: the best so far can be kept.
TEST_F(StopTest, TuneSearchTellsTheBestSoFar) {
  std::string source, target, penalties = "0";
  for (int i = 0; i < 50; ++i) source += fmt::format("sentence {}\n", i), target += fmt::format("Satz {}\n", i);
  for (int i = 1; i < 5000; ++i) penalties += fmt::format(",{}", 0.001 * i);
  write("a", source), write("b", target);
  start("tune-search --model " + kModel + " --source a --target b --dry-run --length-penalties " + penalties);
  await([&] { return told().find("[2/") != std::string::npos; });
  const std::string text = stop();
  EXPECT_THAT(text, testing::ContainsRegex("stopped: the best of [0-9]+ of [0-9]+ settings is alpha [0-9.]+ beta [0-9.]+, BLEU "));
  EXPECT_THAT(text, testing::ContainsRegex("To keep it, give --length-penalties [0-9.]+ --coverage-penalties [0-9.]+;"));
}

TEST_F(StopTest, QuantizeSaysThatNothingWasWritten) {
  std::string source, target;
  for (int i = 0; i < 20000; ++i) source += fmt::format("sentence {}\n", i), target += fmt::format("Satz {}\n", i);
  write("a", source), write("b", target);
  start("quantize --model " + kModel + " --source a --target b --output out");
  await([&] { return told().find("measuring f32") != std::string::npos; });
  EXPECT_THAT(stop(), HasSubstr("starling: stopped: nothing was written to out; the same command begins again\n"));
  EXPECT_FALSE(std::filesystem::exists(path("out")));
}

}  // namespace
}  // namespace starling
