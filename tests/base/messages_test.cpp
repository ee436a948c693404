// Messages to files, pipes and devices that take them late, in part or not at all.
#include "base/messages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <thread>

namespace starling {
namespace {

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { EXPECT_EQ(pipe(ends), 0); }
  ~Pipe() { close_reader(), close_writer(); }
  void close_reader() { close_end(0); }
  void close_writer() { close_end(1); }
  int writer() const { return ends[1]; }
  // What has come, until the writer closes.
  std::string rest() {
    close_writer();
    std::string all;
    char block[4096];
    for (ssize_t n; (n = read(ends[0], block, sizeof block)) > 0;) all.append(block, static_cast<size_t>(n));
    return all;
  }
  // Bytes that it takes before a write waits.
  size_t fill() {
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    size_t size = 0;
    for (const std::string block(4096, 'f'); write(ends[1], block.data(), block.size()) > 0;) size += block.size();
    fcntl(ends[1], F_SETFL, 0);
    return size;
  }

 private:
  void close_end(int i) {
    if (ends[i] >= 0) close(ends[i]);
    ends[i] = -1;
  }
};

TEST(MessagesTest, WritesWholeTexts) {
  Pipe pipe;
  Messages messages(pipe.writer());
  EXPECT_TRUE(messages.write("one\n"));
  EXPECT_TRUE(messages.write(""));
  EXPECT_TRUE(messages.write("two, "));
  EXPECT_TRUE(messages.write("three\n"));
  EXPECT_EQ(pipe.rest(), "one\ntwo, three\n");
}

TEST(MessagesTest, WaitsForAReaderThatIsSlow) {
  Pipe pipe;
  const std::string text(300'000, 'x');
  std::string all;
  std::thread reader([&] {
    char block[1000];
    while (all.size() < text.size())
      if (const ssize_t n = read(pipe.ends[0], block, sizeof block); n > 0) all.append(block, static_cast<size_t>(n));
  });
  EXPECT_TRUE(Messages(pipe.writer(), 60'000).write(text));
  reader.join();
  EXPECT_EQ(all, text);
}

TEST(MessagesTest, LosesWhatNobodyReadsAndGoesOnOnALineOfItsOwn) {
  Pipe pipe;
  const size_t room = pipe.fill();
  char block[4096];
  for (int i = 0; i < 2; ++i) EXPECT_EQ(read(pipe.ends[0], block, sizeof block), 4096);
  Messages messages(pipe.writer(), 10);
  EXPECT_FALSE(messages.write(std::string(20'000, 'x') + "\n"));
  EXPECT_FALSE(messages.write("lost\n"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read(pipe.ends[0], block, sizeof block), 4096);
  EXPECT_TRUE(messages.write("heard\n"));
  EXPECT_EQ(pipe.rest(), std::string(room - 5 * 4096, 'f') + std::string(8192, 'x') + "\nheard\n");
}

TEST(MessagesTest, OutlivesItsReaderAndFullDevices) {
  const auto before = std::signal(SIGPIPE, SIG_DFL);  // which would end the program
  Pipe pipe;
  pipe.close_reader();
  Messages gone(pipe.writer());
  errno = ENOENT;
  EXPECT_FALSE(gone.write("text\n"));
  EXPECT_FALSE(gone.write("text\n"));
  EXPECT_EQ(errno, ENOENT);
  const int full = open("/dev/full", O_WRONLY);
  EXPECT_FALSE(Messages(full).write("text\n"));
  close(full);
  EXPECT_FALSE(Messages(full).write("text\n"));  // closed
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
  std::signal(SIGPIPE, before);
}

TEST(MessagesTest, LinesOfSeveralThreadsDoNotMix) {
  Pipe pipe;
  Messages messages(pipe.writer());
  std::vector<std::thread> threads;
  for (const char c : {'a', 'b', 'c'})
    threads.emplace_back([&messages, c] {
      for (int i = 0; i < 100; ++i) messages.write(std::string(50, c) + "\n");
    });
  for (std::thread& t : threads) t.join();
  const std::string all = pipe.rest();
  ASSERT_EQ(all.size(), 300u * 51);
  for (size_t at = 0; at < all.size(); at += 51) EXPECT_EQ(all.substr(at, 51), std::string(50, all[at]).append("\n"));
}

}  // namespace
}  // namespace starling
