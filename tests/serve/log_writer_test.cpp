// Logs whose reader is quick, slow, gone or another, and disks that are full.
#include "serve/log_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "serve/access_log.h"

namespace starling {
namespace {

class LogWriterTest : public testing::Test {
 protected:
  LogWriterTest() { EXPECT_EQ(pipe(pipe_), 0); }
  ~LogWriterTest() override {
    for (const int end : pipe_)
      if (end >= 0) close(end);
  }
  double dropped() const { return metrics_.value("starling_log_dropped_total", "log=\"test\""); }
  // What has been written, once the writer has closed its end.
  std::string read_all() const {
    std::string all;
    char block[4096];
    for (ssize_t n; (n = read(pipe_[0], block, sizeof block)) > 0;) all.append(block, static_cast<size_t>(n));
    return all;
  }
  int take_writer() { return std::exchange(pipe_[1], -1); }

  Metrics metrics_;
  int pipe_[2] = {-1, -1};
};

TEST_F(LogWriterTest, WritesLinesInOrder) {
  std::string expected;
  {
    LogWriter log("test", metrics_, take_writer(), true);
    for (int i = 0; i < 200; ++i) {
      const std::string line = std::to_string(i) + "\n";
      log.add(line);
      expected += line;
    }
    EXPECT_TRUE(log.flush());
  }
  EXPECT_EQ(read_all(), expected);
  EXPECT_EQ(dropped(), 0);
  EXPECT_THAT(metrics_.text(), testing::HasSubstr("\nstarling_log_dropped_total{log=\"test\"} 0\n"));
}

// 100,000 lines, of which the pipe takes 4 KiB and the queue 10,000 bytes: every line is written or counted, and nobody waits. The pipe is
// smaller than the queue, so that lines stay queued however late the writer's thread runs. How much of its one page the pipe fills depends
// on the sizes of the writes: a second one is added to the page only if its last, partial page fits there.
TEST_F(LogWriterTest, DropsAndCountsWhatNobodyReads) {
  constexpr int kLines = 100'000;
  ASSERT_EQ(fcntl(pipe_[1], F_SETPIPE_SZ, 4096), 4096);
  const std::string line(99, 'x');
  {
    LogWriter log("test", metrics_, take_writer(), true, 10'000);
    for (int i = 0; i < kLines; ++i) log.add(line + "\n");
    EXPECT_FALSE(log.flush());
    EXPECT_GT(dropped(), kLines - 10'000);
  }  // ends although nobody has read
  const std::string all = read_all();
  EXPECT_GE(all.size(), line.size() + 1);
  EXPECT_LE(all.size(), 4096u);
  EXPECT_EQ(static_cast<double>(all.size() / 100) + dropped(), kLines);
  for (size_t at = 0; at + 100 <= all.size(); at += 100) ASSERT_EQ(all.substr(at, 100), line + "\n");
}

TEST_F(LogWriterTest, GoesOnWhenItIsReadAgain) {
  LogWriter log("test", metrics_, take_writer(), true);
  for (int i = 0; i < 5000; ++i) log.add(std::string(99, 'x') + "\n");
  EXPECT_FALSE(log.flush());
  char block[1 << 16];
  std::string all;
  while (all.find("again\n") == std::string::npos) {
    log.add("again\n");
    const ssize_t n = read(pipe_[0], block, sizeof block);
    ASSERT_GT(n, 0);
    all.append(block, static_cast<size_t>(n));
  }
}

TEST_F(LogWriterTest, TakesALineThatIsLargerThanItsQueue) {
  const std::string path = testing::TempDir() + "/log_writer_large." + std::to_string(getpid()), line = std::string(200'000, 'x') + "\n";
  {
    LogWriter log("test", metrics_, open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), true, 1000);
    log.add(line);
  }
  std::ifstream in(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), line);
  unlink(path.c_str());
}

TEST_F(LogWriterTest, CountsWhatAFullDiskAndAReaderThatHasGoneLose) {
  {
    LogWriter log("test", metrics_, open("/dev/full", O_WRONLY), true);
    for (int i = 0; i < 3; ++i) log.add("line\n");
    EXPECT_TRUE(log.flush());
    EXPECT_EQ(dropped(), 3);
    close(std::exchange(pipe_[0], -1));
    log.use(take_writer(), true);
    for (int i = 0; i < 3; ++i) log.add("line\n");
    EXPECT_TRUE(log.flush());
  }
  EXPECT_EQ(dropped(), 6);
}

TEST_F(LogWriterTest, LeavesAReaderThatHasStoppedForAnotherFile) {
  const std::string path = testing::TempDir() + "/log_writer_other." + std::to_string(getpid());
  LogWriter log("test", metrics_, take_writer(), true);
  for (int i = 0; i < 2000; ++i) log.add(std::string(99, 'x') + "\n");
  EXPECT_FALSE(log.flush());
  log.use(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), true);
  log.add("last\n");
  EXPECT_TRUE(log.flush());
  std::ifstream in(path);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(in), {}), testing::EndsWith("x\nlast\n"));
  unlink(path.c_str());
}

TEST(AccessLogTest, DoesNotWaitForTheReaderOfAPipe) {
  Metrics metrics;
  const std::string path = testing::TempDir() + "/access_log_pipe." + std::to_string(getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  try {
    AccessLog log(path, metrics);
    ADD_FAILURE();
  } catch (const IoError& e) {
    EXPECT_EQ(e.what(), path + ": cannot be opened for the access log: nobody reads this pipe; start its reader first");
  }
  unlink(path.c_str());
}

}  // namespace
}  // namespace starling
