// The file system seam: both implementations obey the same contract; the write loop survives EINTR and short writes; a full disk says so.
#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

#include "tests/files/memory_files.h"

namespace starling {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A fresh directory on each kind of file system.
class Files : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      files_ = real_file_system();
      char pattern[] = "/tmp/starling-files-XXXXXX";
      root_ = ::mkdtemp(pattern);
    } else {
      files_ = std::make_unique<MemoryFileSystem>();
      files_->make_directories("/x/y");
      root_ = "/x/y";
    }
  }
  void TearDown() override { files_->remove_all(root_); }
  std::string path(const std::string& name) const { return join_path(root_, name); }

  std::unique_ptr<FileSystem> files_;
  std::string root_;
};

TEST_P(Files, WritesReadsListsAndRemoves) {
  files_->make_directories(path("a/b"));
  files_->make_directories(path("a/b"));
  files_->write_file(path("a/b/one"), "first");
  files_->write_file(path("a/two"), "");
  EXPECT_EQ(files_->read_file(path("a/b/one")), "first");
  EXPECT_EQ(files_->read_file(path("a/two")), "");
  EXPECT_THAT(files_->list(path("a")), ElementsAre("b", "two"));
  EXPECT_EQ(files_->info(path("a/b/one")).size, 5u);
  EXPECT_EQ(files_->info(path("a/b")).kind, FileKind::directory);
  EXPECT_FALSE(files_->exists(path("a/b/none")));
  EXPECT_FALSE(files_->exists(path("a/two/none")));
  EXPECT_FALSE(files_->remove(path("a")));
  files_->remove_all(path("a"));
  files_->remove_all(path("a"));
  EXPECT_THAT(files_->list(root_), ElementsAre());
}

TEST_P(Files, RenameAndExchange) {
  files_->make_directory(path("a"));
  files_->write_file(path("a/x"), "a");
  files_->make_directory(path("b"));
  files_->write_file(path("b/x"), "b");
  EXPECT_THROW(files_->rename(path("a"), path("b")), IoError);
  ASSERT_TRUE(files_->exchange(path("a"), path("b")));
  EXPECT_EQ(files_->read_file(path("a/x")), "b");
  files_->rename(path("a"), path("c"));
  EXPECT_EQ(files_->read_file(path("c/x")), "b");
  EXPECT_FALSE(files_->exists(path("a")));
  files_->replace_file(path("c/x"), "new");
  EXPECT_EQ(files_->read_file(path("c/x")), "new");
  EXPECT_THAT(files_->list(path("c")), ElementsAre("x"));
}

TEST_P(Files, MapsContent) {
  files_->write_file(path("f"), "content");
  files_->write_file(path("empty"), "");
  EXPECT_EQ(files_->map(path("f"))->bytes().size(), 7u);
  EXPECT_EQ(files_->map(path("f"))->bytes()[2], std::byte{'n'});
  EXPECT_TRUE(files_->map(path("empty"))->bytes().empty());
  EXPECT_THROW(files_->map(path("missing")), IoError);
  EXPECT_THROW(files_->map(root_), IoError);
}

TEST_P(Files, ErrorsNameThePath) {
  const auto message = [&](auto&& action) -> std::string {
    try {
      action();
    } catch (const IoError& error) {
      return error.what();
    }
    return "no error";
  };
  files_->write_file(path("file"), "1234");
  EXPECT_THAT(message([&] { files_->read_file(path("missing")); }), HasSubstr(path("missing")));
  EXPECT_THAT(message([&] { files_->create(path("none/f")); }), HasSubstr("none"));
  EXPECT_THAT(message([&] { files_->make_directories(path("file/sub")); }), HasSubstr(path("file")));
  EXPECT_THAT(message([&] { files_->list(path("missing")); }), HasSubstr(path("missing")));
  EXPECT_THAT(message([&] { files_->sync_directory(path("missing")); }), HasSubstr(path("missing")));
  EXPECT_THAT(message([&] { files_->rename(path("missing"), path("m")); }), HasSubstr(path("missing")));
  EXPECT_THAT(message([&] { files_->read_file(path("file"), 3); }), HasSubstr("larger than 3 bytes"));
}

INSTANTIATE_TEST_SUITE_P(Both, Files, ::testing::Bool(), [](const auto& info) { return info.param ? "Real" : "Memory"; });

TEST(RealFiles, RemovesALinkAndNotWhatItPointsTo) {
  const auto files = real_file_system();
  char pattern[] = "/tmp/starling-files-XXXXXX";
  const std::string root = ::mkdtemp(pattern);
  files->make_directories(root + "/precious");
  files->write_file(root + "/precious/f", "x");
  files->make_directories(root + "/gone");
  ASSERT_EQ(::symlink((root + "/precious").c_str(), (root + "/gone/link").c_str()), 0);
  files->remove_all(root + "/gone");
  EXPECT_EQ(files->read_file(root + "/precious/f"), "x");
  files->remove_all(root);
}

TEST(RealFiles, FullDiskIsNamed) {
  const auto files = real_file_system();
  if (!files->exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const auto file = files->create("/dev/full", 1000);
  try {
    file->write("0123456789");
    FAIL() << "/dev/full took the bytes";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no space left on the disk of /dev/full: needs 1000 bytes"));
  }
}

TEST(RealFiles, UnwritableDirectory) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  const auto files = real_file_system();
  try {
    files->create("/proc/starling-test");
    FAIL() << "created a file in /proc";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/proc/starling-test: cannot create the file"));
  }
}

TEST(WriteFully, GoesOnAfterInterruptionsAndShortWrites) {
  const std::string text = "some text that is written in pieces";
  std::string got;
  int calls = 0;
  size_t written = 0;
  const auto write_some = [&](std::span<const std::byte> rest) -> ssize_t {
    if (++calls % 2 == 1) {
      errno = EINTR;
      return -1;
    }
    const size_t count = std::min<size_t>(3, rest.size());
    got.append(reinterpret_cast<const char*>(rest.data()), count);
    return static_cast<ssize_t>(count);
  };
  EXPECT_EQ(detail::write_fully(std::as_bytes(std::span(text)), write_some, written), 0);
  EXPECT_EQ(got, text);
  EXPECT_EQ(written, text.size());
}

TEST(WriteFully, ReportsTheErrorAndHowFarItCame) {
  const std::string text(10, 'x');
  size_t written = 0;
  int calls = 0;
  const auto write_some = [&](std::span<const std::byte>) -> ssize_t {
    if (++calls == 1) return 4;
    errno = ENOSPC;
    return -1;
  };
  EXPECT_EQ(detail::write_fully(std::as_bytes(std::span(text)), write_some, written), ENOSPC);
  EXPECT_EQ(written, 4u);
  const auto nothing = [](std::span<const std::byte>) -> ssize_t { return 0; };
  EXPECT_EQ(detail::write_fully(std::as_bytes(std::span(text)), nothing, written), EIO);
}

TEST(Paths, JoinAndSplit) {
  EXPECT_EQ(join_path("a/b", "c"), "a/b/c");
  EXPECT_EQ(join_path("a/", "c"), "a/c");
  EXPECT_EQ(join_path("", "c"), "c");
  EXPECT_EQ(parent_path("a/b/c"), "a/b");
  EXPECT_EQ(parent_path("a/b/c//"), "a/b");
  EXPECT_EQ(parent_path("c"), ".");
  EXPECT_EQ(parent_path("/c"), "/");
  EXPECT_EQ(parent_path("/"), "/");
  EXPECT_EQ(file_name("a/b/c/"), "c");
  EXPECT_EQ(file_name("c"), "c");
  EXPECT_EQ(file_name("/"), "");
}

TEST(MemoryFiles, ForgetsWhatWasNotSynced) {
  MemoryFileSystem files;
  files.make_directories("run");
  files.write_file("run/kept", "kept");
  files.sync_directory("run");
  const auto file = files.create("run/kept");
  file->write("lost");
  files.write_file("run/nameless", "synced, but not its name");
  files.reboot();
  EXPECT_EQ(files.read_file("run/kept"), "kept");
  EXPECT_FALSE(files.exists("run/nameless"));
}

TEST(MemoryFiles, FailsWhenToldAndFillsUp) {
  MemoryFileSystem files;
  files.set_faults({.at = 2, .fault = Fault::short_write});
  EXPECT_THROW(files.write_file("f", "123456"), IoError);
  EXPECT_EQ(files.read_file("f"), "123");
  files.set_faults({.capacity_bytes = 10});
  EXPECT_THROW(files.write_file("g", "12345678"), IoError);
  EXPECT_EQ(files.read_file("g"), "1234567");
  files.set_faults({.at = 1, .fault = Fault::crash});
  EXPECT_THROW(files.write_file("h", ""), SimulatedCrash);
  EXPECT_THROW(files.exists("h"), SimulatedCrash);
}

}  // namespace
}  // namespace starling
