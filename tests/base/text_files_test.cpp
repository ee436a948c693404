// Files that are read whole end, whatever they are: devices, pipes and directories are refused or read up to a bound, never for ever.
#include "base/text_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "base/system_reason.h"

namespace starling {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TextFiles : public testing::Test {
 protected:
  TextFiles() {
    char name[] = "/tmp/starling_text_XXXXXX";
    root_ = mkdtemp(name);
    std::ofstream(path("f"), std::ios::binary) << std::string("a: 1\n\0b", 7);
    std::ofstream(path("large")) << std::string((1 << 20) + 1, '#');
    std::ofstream(path("largest")) << std::string(1 << 20, '#');
    mkfifo(path("pipe").c_str(), 0600);
  }
  ~TextFiles() override { std::filesystem::remove_all(root_); }
  std::string path(const std::string& name) const { return root_ + "/" + name; }
  template <class E, class F>
  static std::string message_of(F f) {
    try {
      f();
      return "no error";
    } catch (const E& e) {
      return e.what();
    }
  }
  std::string root_;
};

TEST_F(TextFiles, RegularFilesAreReadAsTheyAre) {
  EXPECT_EQ(read_text_file(path("f")), std::string("a: 1\n\0b", 7));
  EXPECT_EQ(read_config_file(path("f")), std::string("a: 1\n\0b", 7));
  EXPECT_EQ(read_config_file(path("largest")).size(), size_t{1} << 20);
  EXPECT_EQ(read_config_file("/dev/null"), "");
}

TEST_F(TextFiles, WhatHasNoEndOrWaitsIsRefused) {
  const auto config = [&](const std::string& name) { return message_of<ConfigError>([&] { read_config_file(name); }); };
  EXPECT_THAT(config("/dev/zero"), AllOf(HasSubstr("/dev/zero"), HasSubstr("longer than 1 MiB")));
  EXPECT_THAT(config(path("large")), HasSubstr("longer than 1 MiB"));
  EXPECT_THAT(config(path("pipe")), AllOf(HasSubstr(path("pipe")), HasSubstr("named pipe")));
  EXPECT_THAT(message_of<IoError>([&] { read_config_file(root_); }), HasSubstr("is a directory"));
  const auto text = [&](const std::string& name) { return message_of<IoError>([&] { read_text_file(name); }); };
  EXPECT_THAT(text("/dev/zero"), HasSubstr("/dev/zero: is not a regular file but a device"));
  EXPECT_THAT(text(path("pipe")), HasSubstr("is not a regular file but a pipe"));
  EXPECT_THAT(text(root_), HasSubstr("is not a regular file but a directory"));
  EXPECT_THAT(message_of<IoError>([&] { real_file_system()->map(path("pipe")); }), HasSubstr("is not a regular file but a pipe"));
  EXPECT_THAT(text(path("none")), AllOf(HasSubstr(path("none")), HasSubstr("check the path")));
  EXPECT_THAT(message_of<IoError>([&] { read_config_file(path("none")); }), HasSubstr(path("none")));
}

TEST_F(TextFiles, ConfigurationsComeThroughPipesOfTheShell) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "train:\n", 7), 7);
  close(ends[1]);
  EXPECT_EQ(read_config_file("/dev/fd/" + std::to_string(ends[0])), "train:\n");
  close(ends[0]);
}

TEST(SystemReason, FitsTheError) {
  EXPECT_THAT(system_reason(ENOSPC), HasSubstr("free some space"));
  EXPECT_THAT(system_reason(EDQUOT), HasSubstr("quota"));
  for (const int error : {EACCES, EPERM, EROFS}) EXPECT_THAT(system_reason(error), Not(HasSubstr("space"))) << error;
  EXPECT_THAT(system_reason(EROFS), HasSubstr("read-only"));
  EXPECT_THAT(system_reason(EACCES), HasSubstr("permissions"));
}

// A write beyond ulimit -f, with the signal ignored as the program does.
TEST_F(TextFiles, TheLimitOnFileSizesIsNamed) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string message = message_of<IoError>([&] { real_file_system()->replace_file(path("f"), std::string(10000, 'x')); });
    const bool named = message.find("4096 bytes: raise the limit (ulimit -f)") != std::string::npos;
    const bool clean = std::filesystem::file_size(path("f")) == 7 && !std::filesystem::exists(path(".tmp-f"));
    _exit(named && clean ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace starling
