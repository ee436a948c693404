// An input is recognised as the output by whatever name it has; what can be written without harm is not refused.
#include "storage/outputs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace starling {
namespace {

using ::testing::HasSubstr;

class Outputs : public testing::Test {
 protected:
  Outputs() {
    char name[] = "/tmp/starling_outputs_XXXXXX";
    root_ = mkdtemp(name);
    std::ofstream(path("f")) << "text\n";
    std::ofstream(path("g")) << "text\n";
    std::filesystem::create_directories(path("model/sub"));
    std::filesystem::create_hard_link(path("f"), path("hard"));
    std::filesystem::create_symlink("f", path("soft"));
    std::filesystem::create_symlink("model", path("model-link"));
    mkfifo(path("pipe").c_str(), 0600);
  }
  ~Outputs() override { std::filesystem::remove_all(root_); }
  std::string path(const std::string& name) const { return root_ + "/" + name; }
  static std::string refusal(const std::string& output, const std::string& input) {
    try {
      refuse_own_input({"--output", output}, {{"--other", "/nowhere"}, {"--input", input}});
      return "";
    } catch (const ConfigError& e) {
      return e.what();
    }
  }
  std::string root_;
};

TEST_F(Outputs, TheSameFileByAnyName) {
  const int descriptor = ::open(path("f").c_str(), O_RDONLY);
  const std::string open_file = "/dev/fd/" + std::to_string(descriptor);
  const std::string roundabout = root_ + "/model/../f";
  for (const std::string& name : {path("f"), path("hard"), path("soft"), open_file, roundabout})
    for (const std::string& other : {path("f"), path("hard"), path("soft"), open_file})
      EXPECT_THAT(refusal(name, other), HasSubstr("--output " + name + " is the same file as --input " + other)) << name << other;
  ::close(descriptor);
  EXPECT_THAT(refusal(path("model-link"), path("model")), HasSubstr("is the same directory as"));
}

TEST_F(Outputs, ARedirectionIsSeen) {
  const int kept = ::dup(STDIN_FILENO), file = ::open(path("f").c_str(), O_RDONLY);
  ::dup2(file, STDIN_FILENO);
  const std::string same = refusal(path("hard"), "-"), other = refusal(path("g"), "-");
  ::dup2(kept, STDIN_FILENO);
  ::close(kept), ::close(file);
  EXPECT_THAT(same, HasSubstr("is the same file as --input"));
  EXPECT_EQ(other, "");
}

TEST_F(Outputs, WithinADirectoryThatIsRead) {
  EXPECT_THAT(refusal(path("model/new/file"), path("model")), HasSubstr("lies in --input"));
  EXPECT_THAT(refusal(path("model-link/sub"), path("model")), HasSubstr("lies in --input"));
  EXPECT_EQ(refusal(path("model-2"), path("model")), "");
  EXPECT_EQ(refusal(path("f"), path("model")), "");
  EXPECT_EQ(refusal(root_, path("model")), "");
}

TEST_F(Outputs, WhatDoesNoHarm) {
  for (const char* name : {"/dev/null", "/dev/stdout", "-", "/dev/fd/1"}) EXPECT_EQ(refusal(name, "/dev/null"), "") << name;
  EXPECT_EQ(refusal(path("pipe"), path("pipe")), "");
  EXPECT_EQ(refusal(path("new"), path("new")), "");
  EXPECT_EQ(refusal(path("g"), path("f")), "");
  EXPECT_EQ(refusal(path("g"), ""), "");
}

TEST_F(Outputs, APartialFileTakesANameThatIsFree) {
  namespace fs = std::filesystem;
  fs::create_symlink("f", path("out.partial"));
  fs::create_symlink("nowhere", path("out.partial-2"));
  fs::create_directory(path("out.partial-3"));
  EXPECT_EQ(make_partial(path("out")), path("out.partial-4"));
  EXPECT_EQ(make_partial(path("out")), path("out.partial-5"));
  EXPECT_EQ(make_partial(path("new")), path("new.partial"));
  EXPECT_TRUE(fs::is_empty(path("new.partial")));
  EXPECT_EQ(fs::file_size(path("f")), 5u);
  EXPECT_FALSE(fs::exists(path("nowhere")));
  EXPECT_THROW(make_partial(path("missing/out")), IoError);
}

}  // namespace
}  // namespace starling
