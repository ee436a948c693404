// What `starling manual` writes: pages that man formats without complaint, and scripts that shells accept and complete with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/own_directory.h"

namespace starling {
namespace {

using testing::HasSubstr;

std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char part[4096];
  for (size_t count; (count = fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, count);
  EXPECT_EQ(pclose(pipe), 0) << command << text;
  return text;
}

class ManualTest : public testing::Test {
 protected:
  void SetUp() override { output_of(std::string(STARLING_BINARY) + " manual --output " + directory_.path()); }
  std::string file(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(directory_.file(name)).rdbuf();
    return text.str();
  }
  // What bash offers for the words of a command line, the last of which is incomplete.
  std::string completed(const std::string& words, int count) const {
    const std::string script = "source " + directory_.file("bash-completion/completions/starling") + "; COMP_WORDS=(" + words +
                               "); COMP_CWORD=" + std::to_string(count - 1) + "; _starling; echo \"${COMPREPLY[*]}\"";
    return output_of("bash -c '" + script + "'");
  }
  const OwnDirectory directory_;
};

TEST_F(ManualTest, PagesHaveEveryVerbAndOption) {
  const std::string whole = file("man/man1/starling.1"), train = file("man/man1/starling-train.1");
  EXPECT_THAT(whole, HasSubstr("starling\\-translate"));
  EXPECT_THAT(train, HasSubstr("\\-\\-train.learning\\-rate"));
  EXPECT_THAT(train, HasSubstr("\\-\\-from\\-marian"));
  EXPECT_THAT(train, testing::Not(HasSubstr("\n\n.TP"))) << "an option without a text";
  EXPECT_FALSE(file("man/man1/starling-bench-distributed.1").empty());
  if (std::system("command -v man >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no man";
  for (const auto& page : std::filesystem::directory_iterator(directory_.file("man/man1")))
    EXPECT_EQ(output_of("man --warnings -l " + page.path().string() + " 2>&1 >/dev/null"), "") << page.path();
}

TEST_F(ManualTest, BashCompletesVerbsOptionsAndWords) {
  EXPECT_EQ(completed("starling tran", 2), "translate\n");
  EXPECT_THAT(completed("starling bench dis", 3), HasSubstr("distributed"));
  EXPECT_EQ(completed("starling translate --sou", 3), "--source-prefix --source-pieces --source-language\n");
  EXPECT_EQ(completed("starling bench train --precision b", 5), "bf16\n");
  EXPECT_EQ(completed("starling bench train --precision = f", 6), "f32\n");
  EXPECT_EQ(completed("starling train --model.norm p", 4), "pre post\n");
  EXPECT_EQ(completed("starling translate --model x", 4), "\n") << "files are left to bash";
}

TEST_F(ManualTest, OtherShellsAcceptTheirScripts) {
  EXPECT_THAT(file("zsh/vendor-completions/_starling"), testing::StartsWith("#compdef starling"));
  EXPECT_THAT(file("fish/vendor_completions.d/starling.fish"), HasSubstr("complete -c starling"));
  if (std::system("command -v zsh >/dev/null 2>&1") == 0) output_of("zsh -n " + directory_.file("zsh/vendor-completions/_starling"));
  if (std::system("command -v fish >/dev/null 2>&1") == 0)
    output_of("fish -n " + directory_.file("fish/vendor_completions.d/starling.fish"));
}

}  // namespace
}  // namespace starling
