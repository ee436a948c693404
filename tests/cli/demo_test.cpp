// The demo's script with a program in place of starling that only pretends to train: what it says when training ended early.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;

class DemoTest : public ProgramTest {
 protected:
  // Runs the script in a repository of its own, whose path has a blank, after so many updates of the recipe's.
  ShellOutcome demo(int updates) const {
    namespace fs = std::filesystem;
    fs::create_directories(path("a repository/tools")), fs::create_directories(path("a repository/recipes"));
    const auto copy = [&](const std::string& file) {
      fs::copy_file(STARLING_SOURCE_DIR "/" + file, path("a repository/" + file), fs::copy_options::overwrite_existing);
    };
    copy("tools/demo.sh"), copy("recipes/demo.yml");
    write("pretends", fmt::format(R"(#!/bin/sh
case $1 in
  demo-corpus) mkdir -p "$3"; for file in train valid test; do echo sun >"$3/$file.en"; echo Sonne >"$3/$file.de"; done;;
  train) mkdir -p run-demo/model
    echo '{{"schema":1,"type":"stop","time":"2026-01-01","step":{},"reason":"complete","seconds":210.4}}' >run-demo/model/events.jsonl;;
  translate) cat;;
  evaluate) echo "BLEU = 1.0";;
esac
)",
                                  updates));
    fs::permissions(path("pretends"), fs::perms::owner_all);
    return run_shell(fmt::format("cd / && '{}' '{}'", path("a repository/tools/demo.sh"), path("pretends")));
  }
};

TEST_F(DemoTest, SaysHowFarItCameAndHowToCompleteIt) {
  const ShellOutcome early = demo(500);
  EXPECT_EQ(early.status, 0) << early.text;
  EXPECT_THAT(early.text, HasSubstr("reached its time limit after 500 of 2500 updates (20 %)"));
  EXPECT_THAT(early.text, HasSubstr("about 98 BLEU;\nthe rest would take about 14 minutes here:"));
  const std::string command =
      fmt::format("(cd {}/a\\ repository && {} train recipes/demo.yml --train.max-minutes 0)", directory_, path("pretends"));
  EXPECT_THAT(early.text, HasSubstr(command));
  EXPECT_EQ(run_shell("cd / && " + command).status, 0);
}

TEST_F(DemoTest, IsSilentAboutAWholeTrainingAndShowsACommandForAnyDirectory) {
  const ShellOutcome whole = demo(2500);
  EXPECT_EQ(whole.status, 0) << whole.text;
  EXPECT_THAT(whole.text, Not(HasSubstr("time limit")));
  EXPECT_THAT(whole.text,
              HasSubstr(fmt::format("| {} translate --model {}/a\\ repository/run-demo/model\n", path("pretends"), directory_)));
}

}  // namespace
}  // namespace starling
