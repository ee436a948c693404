// Messages that nobody can read are lost, and the verb goes on; a result that cannot be written is an error.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/program.h"
#include "tests/serve/fixture_model.h"

namespace starling {
namespace {

using testing::HasSubstr;

// Places for standard error: without room, closed, with a reader that has gone, with one that has stopped.
class LostMessages : public ProgramTest, public testing::WithParamInterface<std::string> {
 protected:
  LostMessages() {
    EXPECT_EQ(mkfifo(path("stalled").c_str(), 0600), 0);
    stalled_ = open(path("stalled").c_str(), O_RDWR | O_NONBLOCK);
    const std::string block(4096, 'x');
    while (::write(stalled_, block.data(), block.size()) > 0) {
    }
    EXPECT_EQ(mkfifo(path("gone").c_str(), 0600), 0);
    write("text", "a house\nthe dog runs\n");
    write("hypotheses", "ein Haus\nder Hund\n");
    write("references", "ein Haus\nder Hund läuft\n");
  }
  ~LostMessages() override { close(stalled_); }
  // Runs the verb with standard error there, and gives its standard output.
  ShellOutcome run_there(const std::string& arguments) {
    if (GetParam() == "gone")  // opened by a reader, which then goes
      return run_shell("cd '" + directory_ + "' && (exec 3<>gone 4>gone 3<&-; exec '" STARLING_BINARY "' " + arguments + " 2>&4)");
    return run_shell("cd '" + directory_ + "' && ('" STARLING_BINARY "' " + arguments + " 2" + GetParam() + ")");
  }
  int stalled_ = -1;
};

TEST_P(LostMessages, EndNoVerb) {
  EXPECT_EQ(run_there("no-verb").status, 2);
  EXPECT_EQ(run_there("").status, 2);
  EXPECT_EQ(run_there("translate --model nothing").status, 2);
  ShellOutcome o = run_there("translate --threads 1 --model '" + kModel + "' -i text");
  EXPECT_EQ(o.status, 0);
  EXPECT_EQ(std::count(o.text.begin(), o.text.end(), '\n'), 2) << o.text;
  o = run_there("translate --threads 1 --model '" + kModel + "' -i text -o out");
  EXPECT_EQ(o.status, 0);
  EXPECT_TRUE(std::filesystem::exists(path("out")));
  o = run_there("evaluate --hypotheses hypotheses --references references");
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("BLEU"));
  o = run_there("average -o mean '" + kModel + "' '" + kModel + "'");
  EXPECT_THAT(o.status, testing::AnyOf(0, 2)) << o.text;  // and no signal
  o = run_there("quantize --model '" + kModel + "' -o eight");
  EXPECT_THAT(o.status, testing::AnyOf(0, 2)) << o.text;
  o = run_there("tune-search --model '" + kModel + "'");
  EXPECT_EQ(o.status, 2) << o.text;
  o = run_there("train --train.source text");
  EXPECT_EQ(o.status, 2) << o.text;
}

INSTANTIATE_TEST_SUITE_P(Places, LostMessages, testing::Values(">/dev/full", ">&-", ">stalled", "gone"));

class LostResults : public ProgramTest {};

TEST_F(LostResults, AreErrors) {
  write("text", "a house\n");
  const ShellOutcome o = run("translate --threads 1 --model '" + kModel + "' -i text 2>&1 >/dev/full; exit $?");
  EXPECT_EQ(o.status, 3) << o.text;
  EXPECT_THAT(o.text, HasSubstr("No space left on device"));
  EXPECT_EQ(run("help train 2>/dev/full >/dev/full; exit $?").status, 3);
}

}  // namespace
}  // namespace starling
