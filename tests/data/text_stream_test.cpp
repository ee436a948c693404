// Text from a pipe: every line is in one window, whatever ends the reading.
#include "data/text_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "base/files.h"
#include "base/sha256.h"
#include "base/text_files.h"
#include "tests/data/fixtures.h"

namespace starling {
namespace {

using test::TemporaryDirectory;
using testing::Contains;
using testing::HasSubstr;
using Ready = TextStream::Ready;

std::string numbered(int64_t line) { return fmt::format("ka lo mi {0}\ttür {0}\n", line); }

class TextStreamTest : public testing::Test {
 protected:
  TextStreamTest() {
    signal(SIGPIPE, SIG_IGN);
    data_.train.emplace_back();
    data_.train.front().tsv = pipe_;
    data_.window_lines = 300;
    CHECK(mkfifo(pipe_.c_str(), 0600) == 0, "{}", pipe_);
  }
  ~TextStreamTest() override { signal(SIGPIPE, SIG_DFL); }

  std::unique_ptr<TextStream> open(int64_t first) {
    return std::make_unique<TextStream>(*files_, directory_.path("stream"), data_, vocabulary_, vocabulary_, first,
                                        [this](const std::string& line) {
                                          const std::lock_guard lock(mutex_);
                                          said_.push_back(line);
                                        });
  }
  // Writes texts into the pipe until nobody reads any more; `pause` after each.
  std::thread producer(std::vector<std::string> texts, int pause_us = 0) {
    return std::thread([this, texts = std::move(texts), pause_us] {
      const int pipe = ::open(pipe_.c_str(), O_WRONLY);
      for (const std::string& text : texts) {
        for (std::string_view left = text; !left.empty();) {
          const ssize_t count = ::write(pipe, left.data(), std::min<size_t>(left.size(), 7001));
          if (count <= 0) return void(close(pipe));
          left.remove_prefix(static_cast<size_t>(count));
        }
        usleep(static_cast<useconds_t>(pause_us));
      }
      close(pipe);
    });
  }
  std::string window(int64_t number) const { return test::read_all(directory_.path(fmt::format("stream/window-{:06}.tsv", number))); }

  TemporaryDirectory directory_;
  std::unique_ptr<FileSystem> files_ = real_file_system();
  Vocabulary vocabulary_ = test::small_vocabulary(directory_);
  const std::string pipe_ = directory_.path("pipe");
  DataOptions data_;
  std::mutex mutex_;
  std::vector<std::string> said_;
};

TEST_F(TextStreamTest, IsCutIntoWindowsWhoseTokensAreThere) {
  std::string text, all;
  for (int64_t i = 0; i < 1000; ++i) text += numbered(i);
  text += "ka\tlo";  // without a line end
  std::thread writer = producer({text});
  {
    const auto stream = open(0);
    int64_t number = 0, pairs = 0;
    for (; stream->wait(number, {}) == Ready::yes; ++number) {
      pairs += stream->tokens(number).size();
      all += window(number);
      EXPECT_EQ(stream->tokens(number).size(), number < 3 ? 300 : 101);
    }
    EXPECT_EQ(stream->wait(number, {}), Ready::ended);
    EXPECT_EQ(pairs, 1001);
    EXPECT_EQ(stream->lines(), 1001);
    EXPECT_EQ(stream->broken(), 0);
    stream->keep_from(2);
    EXPECT_FALSE(files_->exists(directory_.path("stream/window-000001.tsv")));
    EXPECT_FALSE(files_->exists(directory_.path("stream/tokens-000001")));
    EXPECT_TRUE(files_->exists(directory_.path("stream/window-000002.tsv")));
  }
  writer.join();
  EXPECT_EQ(all, text + "\n");
}

TEST_F(TextStreamTest, TenInterruptionsLoseNothingAndRepeatNothing) {
  const int64_t lines = 20000;
  Random random(1, 2);
  int64_t window_number = 0;
  bool ended = false;
  for (int start = 0; !ended; ++start) {
    ASSERT_LT(start, 200);
    auto stream = open(window_number);
    std::vector<std::string> texts;
    for (int64_t i = stream->lines(); i < lines; ++i) texts.push_back(numbered(i));
    std::thread writer = producer(std::move(texts));
    const auto windows = start < 10 ? static_cast<int64_t>(random.below(4)) : lines;
    for (int64_t i = 0; i < windows && !ended; ++i) {
      ended = stream->wait(window_number, {}) == Ready::ended;
      window_number += !ended;
    }
    usleep(static_cast<useconds_t>(random.below(20000)));
    stream.reset();
    // A reader that has not been opened yet is waited for by the writer for ever.
    const int unblocked = ::open(pipe_.c_str(), O_RDONLY | O_NONBLOCK);
    close(unblocked);
    writer.join();
  }
  std::string expected, all;
  for (int64_t i = 0; i < lines; ++i) expected += numbered(i);
  for (int64_t i = 0; i < window_number; ++i) all += window(i);
  EXPECT_EQ(all.size(), expected.size());
  EXPECT_TRUE(all == expected);
}

TEST_F(TextStreamTest, HalfALineOfAKilledProcessIsReadAgain) {
  files_->make_directories(directory_.path("stream"));
  directory_.write("stream/next.tsv", numbered(0) + numbered(1) + "ka lo m");
  std::string rest;
  for (int64_t i = 2; i < 5; ++i) rest += numbered(i);
  const auto stream = open(0);
  EXPECT_EQ(stream->lines(), 2);
  EXPECT_THAT(said_, Contains(HasSubstr("the producer must continue with line 3")));
  std::thread writer = producer({rest});
  EXPECT_EQ(stream->wait(0, {}), Ready::yes);
  writer.join();
  EXPECT_EQ(window(0), numbered(0) + numbered(1) + rest);
}

TEST_F(TextStreamTest, BrokenLinesAreCountedAndLeftOut) {
  std::thread writer =
      producer({"no tab\n", "a\tb\tc\td\n", "ka\tlo\t0-0 1-1\n", "\xff\tlo\n", "ka\tlo\r\n", std::string("k\0a\tlo\n", 7), "\n"});
  const auto stream = open(0);
  EXPECT_EQ(stream->wait(0, {}), Ready::yes);
  writer.join();
  EXPECT_EQ(stream->lines(), 7);
  EXPECT_EQ(stream->broken(), 5);
  EXPECT_EQ(stream->tokens(0).size(), 2);
  EXPECT_EQ(window(0), "\t\n\t\nka\tlo\n\t\nka\tlo\n\t\n\t\n");
  EXPECT_THAT(said_, Contains(HasSubstr("line 1 of the text is left out: it has no tab")));
  EXPECT_THAT(said_, Contains(HasSubstr("it is not UTF-8")));
  EXPECT_THAT(said_, Contains(HasSubstr("further lines are only counted")));
}

// A link beyond the words would end the run at every start.
TEST_F(TextStreamTest, LinksComeInTheThirdColumn) {
  data_.train.front().alignment = kAlignmentColumn;
  std::thread writer =
      producer({"ka lo\tmi\t1-0\n", "ka\tlo\n", "ka\tlo\t0-1\n", "ka\tlo\tx\n", "ka\tlo\t9-0\n", "\tlo\t0-0\n", "ka\tlo\t0-0\n"});
  const auto stream = open(0);
  EXPECT_EQ(stream->wait(0, {}), Ready::yes);
  writer.join();
  EXPECT_EQ(stream->broken(), 4);
  EXPECT_EQ(window(0), "ka lo\tmi\t1-0\nka\tlo\t\n\t\t\n\t\t\n\t\t\n\t\t\nka\tlo\t0-0\n");
  EXPECT_THAT(said_, Contains(HasSubstr("line 3 of the text is left out: the link 0-1 is beyond the target")));
  EXPECT_TRUE(stream->tokens(0).linked());
  ASSERT_EQ(stream->tokens(0).size(), 3);
  const auto of_pair = [&](int64_t pair) {
    std::vector<TokenLink> links;
    stream->tokens(0).append_links(pair, links);
    return links;
  };
  const auto expected = [&](const std::string& source, const std::string& target, const std::string& links) {
    const EncodedLine a = vocabulary_.encode_as_it_stands_with_bytes(source), b = vocabulary_.encode_as_it_stands_with_bytes(target);
    return token_links(parse_links(links), AlignmentUnit::words, {source, a}, {target, b}, 0);
  };
  EXPECT_EQ(of_pair(0), expected("ka lo", "mi", "1-0"));
  EXPECT_TRUE(of_pair(1).empty());
  EXPECT_EQ(of_pair(2), expected("ka", "lo", "0-0"));
}

TEST_F(TextStreamTest, AWindowWithoutPairsSaysSo) {
  data_.window_lines = 2;
  std::thread writer = producer({"ka\t\n", "\tlo\n", "ka\tlo\n"}, 20000);  // one side is missing
  const auto stream = open(0);
  EXPECT_EQ(stream->wait(0, {}), Ready::empty);
  EXPECT_EQ(stream->wait(1, {}), Ready::yes);
  writer.join();
}

// A producer that has gone wrong for a while: not a window for each few hundred of its lines.
TEST_F(TextStreamTest, AWindowOfBrokenLinesGrowsUntilItHasText) {
  data_.window_lines = 2;
  std::string broken;
  for (int i = 0; i < 200'000; ++i) broken += "x\n";
  std::thread writer = producer({broken, "ka\tlo\nka\tlo\n", broken});
  const auto begin = std::chrono::steady_clock::now();
  auto stream = open(0);
  EXPECT_EQ(stream->wait(0, {}), Ready::yes);
  EXPECT_EQ(stream->wait(1, {}), Ready::yes);
  EXPECT_EQ(stream->wait(2, {}), Ready::empty);
  EXPECT_EQ(stream->wait(3, {}), Ready::ended);
  writer.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(stream->lines(), 400'002);
  EXPECT_EQ(window(0).size(), 2 * 200'000 + 6);
}

// Windows are the same whatever was read of them when the process ended.
TEST_F(TextStreamTest, AnInterruptedWindowOfBrokenLinesGoesOn) {
  data_.window_lines = 2;
  const int open_end = ::open(pipe_.c_str(), O_RDWR);  // the text has not ended when the producer closes the pipe
  std::thread writer = producer({"x\nx\nx\n"});
  {
    const auto stream = open(0);
    while (stream->lines() < 3) usleep(1000);
    EXPECT_EQ(stream->wait(0, [] { return true; }), Ready::stopped);
  }
  writer.join();
  close(open_end);
  std::thread later = producer({"x\n", "ka\tlo\n"}, 20000);
  EXPECT_EQ(open(0)->wait(0, {}), Ready::yes);
  later.join();
}

TEST_F(TextStreamTest, WindowsThatHaveChangedAreNamed) {
  std::thread writer = producer({numbered(0), numbered(1)});
  std::string digests;
  {
    const auto stream = open(0);
    EXPECT_EQ(stream->wait(0, {}), Ready::yes);
    digests = stream->digests();
    EXPECT_NO_THROW(stream->require_windows(digests));
    EXPECT_THROW(stream->require_windows("window-000000.tsv 0"), DataError);  // of another run's checkpoint
  }
  writer.join();
  EXPECT_THAT(digests, HasSubstr("window-000000.tsv " + sha256_file(*files_, directory_.path("stream/window-000000.tsv"))));
  std::string text = window(0);
  text[0] = 'l';
  std::ofstream(directory_.path("stream/window-000000.tsv")) << text;
  try {
    open(0);
    FAIL();
  } catch (const DataError& e) {
    EXPECT_THAT(e.what(), HasSubstr("window-000000.tsv is not what was read from the pipe"));
  }
}

TEST_F(TextStreamTest, WaitsForAProducerThatStallsUntilItIsAskedToStop) {
  const auto stream = open(0);
  std::atomic<bool> stop{false};
  std::thread later([&] {
    usleep(300000);
    stop = true;
  });
  EXPECT_EQ(stream->wait(0, [&] { return stop.load(); }), Ready::stopped);
  later.join();
}

TEST_F(TextStreamTest, WindowsThatAreGoneAreNamed) {
  std::thread writer = producer({numbered(0)});
  { EXPECT_EQ(open(0)->wait(0, {}), Ready::yes); }
  writer.join();
  EXPECT_THROW(open(5), DataError);
  files_->remove(directory_.path("stream/window-000000.tsv"));
  try {
    open(0);
    FAIL();
  } catch (const DataError& e) {
    EXPECT_THAT(e.what(), HasSubstr("window-000000.tsv is missing"));
  }
  EXPECT_TRUE(is_stream(data_));
  EXPECT_TRUE(is_pipe("-"));
  EXPECT_FALSE(is_pipe(directory_.path("nowhere")));
}

}  // namespace
}  // namespace starling
