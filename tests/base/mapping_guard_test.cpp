// Mappings of files that become shorter while they are read.
#include "base/mapping_guard.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "storage/safetensors.h"
#include "tests/files/forwarding_files.h"

namespace starling {
namespace {

constexpr size_t kBytes = 64 << 10;

class MappingGuardTest : public testing::Test {
 protected:
  MappingGuardTest() : path_(testing::TempDir() + "/mapping_guard." + std::to_string(getpid())) {
    files_->write_file(path_, std::string(kBytes, 'x'));
  }
  ~MappingGuardTest() override { std::filesystem::remove(path_); }
  static int64_t sum(std::span<const std::byte> bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}, [](int64_t all, std::byte b) { return all + static_cast<int64_t>(b); });
  }
  std::string complaint() const {
    return path_ +
           ": was truncated while it was being read, or its disk failed; restore it, and put a new version in "
           "its place by renaming (mv), not by writing into it";
  }

  std::unique_ptr<FileSystem> files_ = real_file_system();
  std::string path_;
};

TEST_F(MappingGuardTest, SaysNothingOfAFileThatStays) {
  const auto mapped = files_->map(path_);
  const MappingGuard guard(mapped->bytes(), path_);
  EXPECT_EQ(sum(mapped->bytes()), int64_t{'x'} * kBytes);
  guard.require_whole();
}

TEST_F(MappingGuardTest, FindsZerosBehindANewEndAndSaysSo) {
  const auto mapped = files_->map(path_), other = files_->map(path_);
  const MappingGuard guard(mapped->bytes(), path_);
  MappingGuard whole(other->bytes(), path_);
  std::filesystem::resize_file(path_, kBytes / 2);
  EXPECT_EQ(sum(mapped->bytes()), int64_t{'x'} * kBytes / 2);
  try {
    guard.require_whole();
    ADD_FAILURE();
  } catch (const IoError& e) {
    EXPECT_EQ(e.what(), complaint());
  }
  const MappingGuard moved = std::move(whole);
  EXPECT_EQ(sum(other->bytes().first(kBytes / 2)), int64_t{'x'} * kBytes / 2);
  moved.require_whole();  // nobody has read what this one lacks
}

TEST_F(MappingGuardTest, ThousandsOfMappingsAreToldApart) {
  std::vector<std::unique_ptr<MappedFile>> mapped;
  std::vector<MappingGuard> guards;
  for (int round = 0; round < 2; ++round) {
    guards.clear(), mapped.clear();
    for (int i = 0; i < 3000; ++i) mapped.push_back(files_->map(path_)), guards.emplace_back(mapped.back()->bytes(), path_);
  }
  std::filesystem::resize_file(path_, 0);
  EXPECT_EQ(sum(mapped[1234]->bytes().last(1)), 0);
  for (size_t i = 0; i < guards.size(); ++i) {
    if (i == 1234)
      EXPECT_THROW(guards[i].require_whole(), IoError);
    else
      guards[i].require_whole();
  }
}

// What is not guarded is as it was.
TEST_F(MappingGuardTest, LeavesOtherFaultsAlone) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers catch faults themselves";
#endif
  const auto mapped = files_->map(path_), other = files_->map(path_);
  const MappingGuard guard(mapped->bytes(), path_);
  std::filesystem::resize_file(path_, 0);
  const pid_t child = fork();
  if (child == 0) _exit(sum(other->bytes()) == 0);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) <= 1) << status;
}

// A file system on which somebody cuts every file short as soon as it is mapped.
class CuttingFiles : public ForwardingFiles {
 public:
  explicit CuttingFiles(uint64_t left) : left_(left) {}
  std::unique_ptr<MappedFile> map(const std::string& path) override {
    auto mapped = ForwardingFiles::map(path);
    std::filesystem::resize_file(path, left_);
    return mapped;
  }

 private:
  const uint64_t left_;
};

TEST_F(MappingGuardTest, ATensorFileThatIsCutShortIsAnError) {
  const std::vector<float> values(16 << 10, 1);
  const std::vector<NamedBytes> tensors{{"a", "F32", {16 << 10}, std::as_bytes(std::span(values)), {}}};
  const auto write = [&] {
    const auto file = files_->create(path_);
    write_safetensors(*file, tensors);
    file->close();
  };
  write();
  CuttingFiles within(8192), header(0);
  SafetensorsFile file(within, path_);
  file.require_whole();  // the header is there
  SafetensorsFile moved = std::move(file);
  EXPECT_LT(sum(moved.at("a").data), sum(std::as_bytes(std::span(values))));
  EXPECT_THROW(moved.require_whole(), IoError);
  write();
  EXPECT_THROW(SafetensorsFile(header, path_), IoError);
}

}  // namespace
}  // namespace starling
