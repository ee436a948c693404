// Checkpoints on the real file system.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/files/forwarding_files.h"
#include "tests/storage/checkpoint_parts.h"

namespace starling {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A fresh directory on the real file system.
class CheckpointOnDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/starling-checkpoint-XXXXXX";
    root_ = ::mkdtemp(pattern);
  }
  void TearDown() override { files_->remove_all(root_); }
  std::unique_ptr<FileSystem> files_ = real_file_system();
  std::string root_;
};

TEST_F(CheckpointOnDisk, SavesReplacesPrunesAndCleansUp) {
  const std::string run = root_ + "/new/run";
  {
    CheckpointStore store(*files_, run, 2);
    for (int64_t step = 1; step <= 3; ++step) store.save(step, parts(fmt::format("s{}", step)));
    store.save(3, parts("again"));
    store.save_best(2, parts("best"));
    store.save_best(3, parts("better"));
  }
  files_->make_directories(run + "/checkpoints/.tmp-step-00000009");
  files_->write_file(run + "/checkpoints/.tmp-step-00000009/weights.bin", "half");
  files_->make_directories(run + "/.tmp-best");
  CheckpointStore store(*files_, run, 2);
  EXPECT_THAT(files_->list(run), ElementsAre("best", "checkpoints"));
  EXPECT_THAT(files_->list(run + "/checkpoints"), ElementsAre("step-00000002", "step-00000003"));
  EXPECT_EQ(content_of(*files_, *store.latest()), "again");
  EXPECT_EQ(content_of(*files_, *store.best()), "better");
}

// A file that is in use on some network file systems, so that it cannot be removed for a while.
class InUse : public ForwardingFiles {
 public:
  bool remove(const std::string& path) override {
    if (busy && path.find("step-00000001/weights.bin") != std::string::npos) throw IoError(path + ": the file is in use");
    return ForwardingFiles::remove(path);
  }
  bool busy = true;
};

TEST_F(CheckpointOnDisk, AnOldOneThatCannotBeRemovedIsReportedAndGoesWithTheNext) {
  const std::string run = root_ + "/run";
  InUse files;
  std::vector<std::string> reports;
  CheckpointStore store(files, run, 1, [&](const std::string& line) { reports.push_back(line); });
  store.save(1, parts("one"));
  store.save(2, parts("two"));
  EXPECT_THAT(reports, ElementsAre(HasSubstr("the file is in use")));
  EXPECT_THAT(files.list(run + "/checkpoints"), ElementsAre(".tmp-step-00000001", "step-00000002"));
  files.busy = false;
  store.save(3, parts("three"));
  EXPECT_THAT(files.list(run + "/checkpoints"), ElementsAre("step-00000003"));
  EXPECT_EQ(reports.size(), 1u);
}

TEST_F(CheckpointOnDisk, AnUnwritableDirectoryIsNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  CheckpointStore store(*files_, root_ + "/run", 2);
  store.save(1, parts("one"));
  ASSERT_EQ(::chmod((root_ + "/run/checkpoints").c_str(), 0555), 0);
  try {
    store.save(2, parts("two"));
    ADD_FAILURE() << "saved into a read-only directory";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/run/checkpoints/.tmp-step-00000002: cannot make the directory: Permission denied"));
  }
  EXPECT_EQ(store.latest()->step, 1);
  ASSERT_EQ(::chmod((root_ + "/run/checkpoints").c_str(), 0755), 0);
}

TEST_F(CheckpointOnDisk, AFileInTheWayIsNamed) {
  files_->write_file(root_ + "/run", "a file");
  try {
    CheckpointStore store(*files_, root_ + "/run", 2);
    ADD_FAILURE() << "made a directory below a file";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/run: a directory is needed here"));
  }
}

}  // namespace
}  // namespace starling
