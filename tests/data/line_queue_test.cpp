// Lines of files through the queue: all of them, in order, in pieces as large as asked for, and the error behind them.
#include "data/line_queue.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "base/error.h"

namespace starling {
namespace {

class LineQueueTest : public testing::Test {
 protected:
  LineQueueTest() {
    char name[] = "/tmp/starling_lines_XXXXXX";
    if (mkdtemp(name)) directory_ = name;
  }
  ~LineQueueTest() override { std::filesystem::remove_all(directory_); }
  std::string write(const std::string& name, int first, int lines) const {
    std::ofstream out(directory_ + "/" + name);
    for (int i = 0; i < lines; ++i) out << "line " << first + i << '\n';
    return directory_ + "/" + name;
  }
  std::string directory_;
};

TEST_F(LineQueueTest, FilesComeInOrderInPiecesOfTheSizeAskedFor) {
  LineQueue queue({write("a", 0, 25), write("empty", 0, 0), write("b", 25, 10)}, 8);
  std::vector<std::string> all;
  std::vector<size_t> sizes;
  for (std::vector<std::string> lines = queue.take(8); !lines.empty(); lines = queue.take(8)) {
    sizes.push_back(lines.size());
    all.insert(all.end(), lines.begin(), lines.end());
  }
  ASSERT_EQ(all.size(), 35u);
  for (int i = 0; i < 35; ++i) EXPECT_EQ(all[static_cast<size_t>(i)], "line " + std::to_string(i));
  EXPECT_EQ(sizes, (std::vector<size_t>{8, 8, 8, 8, 3}));
  EXPECT_EQ(queue.expected_lines(1000), 35);
  EXPECT_TRUE(queue.take(8).empty()) << "the end stays the end";
}

TEST_F(LineQueueTest, AnErrorComesAfterTheLinesBeforeIt) {
  LineQueue queue({write("a", 0, 3), directory_ + "/missing"}, 100);
  std::vector<std::string> all;
  EXPECT_THROW(for (std::vector<std::string> lines = queue.take(2); !lines.empty(); lines = queue.take(2))
                   all.insert(all.end(), lines.begin(), lines.end()),
               Error);
  EXPECT_EQ(all.size(), 3u);
}

// A queue that nobody empties does not keep its reader, and what is not taken is forgotten with it. That the reader has ended is seen by
// its file: threads cannot be counted, since those of earlier tests and of sanitizers come and go meanwhile.
TEST_F(LineQueueTest, ItMayEndBeforeItsLines) {
  const std::string path = write("a", 0, 1000);
  const auto times_open = [&] {
    int times = 0;
    for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code closed_meanwhile;
      times += std::filesystem::read_symlink(file.path(), closed_meanwhile) == path;
    }
    return times;
  };
  {
    LineQueue queue({path}, 4);
    EXPECT_EQ(queue.take(2).size(), 2u);
    EXPECT_EQ(times_open(), 1);
  }
  for (int i = 0; i < 1000 && times_open() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(times_open(), 0) << "its reader has ended too";
}

}  // namespace
}  // namespace starling
