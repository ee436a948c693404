// The laboratory is a program of its own, which `starling` becomes for its verbs: nobody should notice, unless it is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text_files.h"
#include "tests/cli/program.h"

namespace starling {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class LaboratoryTest : public ProgramTest {
 protected:
  const std::filesystem::path laboratory_ = std::filesystem::path(STARLING_BINARY).parent_path() / "starling-lab";
  // Runs a copy of the program that lies below this test's directory.
  ShellOutcome run_copy(const std::string& arguments) const { return run_shell("'" + path("here/bin/starling") + "' " + arguments); }
  void SetUp() override {
    std::filesystem::create_directories(path("here/bin"));
    std::filesystem::copy_file(STARLING_BINARY, path("here/bin/starling"));
  }
};

TEST_F(LaboratoryTest, IsFoundBesideTheProgramAndWhereItIsInstalled) {
  const std::string help = run("race --help").text;
  ASSERT_THAT(help, HasSubstr("Usage: starling race"));
  for (const char* place : {"here/libexec/starling/starling-lab", "here/bin/starling-lab"}) {
    const std::filesystem::path file = path(place);
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::create_symlink(laboratory_, file);
    for (const char* words : {"race --help", "help race", "--help race"}) EXPECT_EQ(run_copy(words).text, help) << place << " " << words;
    std::filesystem::remove(file);
  }
}

TEST_F(LaboratoryTest, WhatNeedsItSaysWhereItShouldBe) {
  for (const char* verb : {"race", "bench", "manual"}) {
    const ShellOutcome outcome = run_copy(std::string(verb == std::string("bench") ? "bench limits" : verb));
    EXPECT_EQ(outcome.status, 3);
    EXPECT_THAT(outcome.text,
                AllOf(StartsWith(fmt::format("starling: error: 'starling {}' needs the program starling-lab, which is neither ", verb)),
                      HasSubstr("/here/bin/starling-lab nor "), HasSubstr("/here/libexec/starling/starling-lab; install")));
  }
  const ShellOutcome help = run_copy("help");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.text, HasSubstr("\n  race "));
}

TEST_F(LaboratoryTest, ItsErrorsAndStatusAreTheProgramsOwn) {
  const ShellOutcome wrong = run("bench trian"), missing = run("race none.yml");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.text, StartsWith("starling: error: there is no verb 'trian'; did you mean 'train'?"));
  EXPECT_EQ(missing.status, 3);
  EXPECT_THAT(missing.text, StartsWith("starling: error: cannot read 'none.yml'"));
  EXPECT_EQ(run("--version").text, run_shell(laboratory_.string() + " --version").text);
}

}  // namespace
}  // namespace starling
