// Locks among processes and among open files of one process, and what becomes of one whose file is removed and made again.
#include "base/lock.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

class LockTest : public testing::Test {
 protected:
  LockTest() {
    char name[] = "/tmp/starling_lock_XXXXXX";
    if (mkdtemp(name)) directory_ = name;
    EXPECT_NE(directory_, "");
  }
  ~LockTest() override { fs::remove_all(directory_); }
  std::string directory_;
};

TEST_F(LockTest, IsHeldByOneAndFreeAfterwards) {
  const std::string path = directory_ + "/lock";
  auto first = FileLock::try_acquire(path);
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->in_place());
  EXPECT_FALSE(FileLock::try_acquire(path));
  first.reset();
  EXPECT_TRUE(FileLock::try_acquire(path));
  EXPECT_THROW(FileLock::try_acquire(directory_ + "/missing/lock"), IoError);
}

TEST_F(LockTest, KnowsWhenItsDirectoryIsRemovedAndMadeAgain) {
  const std::string run = directory_ + "/run", path = run + "/lock";
  fs::create_directory(run);
  const auto first = FileLock::try_acquire(path);
  ASSERT_TRUE(first);
  fs::remove_all(run);
  EXPECT_FALSE(first->in_place());
  fs::create_directory(run);
  EXPECT_FALSE(first->in_place());
  const auto second = FileLock::try_acquire(path);  // nothing keeps it from that
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->in_place());
  EXPECT_FALSE(first->in_place());
}

}  // namespace
}  // namespace starling
