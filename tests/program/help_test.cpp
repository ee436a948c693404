// The help: what it shows of verbs, options and keys, and how.
#include "program/help.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/text_files.h"
#include "base/version.h"
#include "cli/verbs.h"
#include "config/config.h"
#include "migration/peer_names.h"
#include "tests/program/called.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;

class HelpTest : public CalledTest {};

TEST_F(HelpTest, EveryOptionOfTheTableExists) {
  CLI::App app;
  add_translate(app), add_score(app), add_evaluate(app);
  for (const PeerName& row : peer_names()) {
    if (row.option.empty()) continue;
    const std::string option(row.option);
    const size_t blank = option.find(' ');
    const CLI::App* verb = app.get_subcommand(option.substr(0, blank));
    EXPECT_NE(verb->get_option_no_throw(option.substr(blank + 1)), nullptr) << option;
  }
}

TEST_F(HelpTest, EveryVerbHasOne) {
  for (const std::string verb :
       {"train", "plan", "translate", "tune-search", "score", "evaluate", "average", "quantize", "bench", "demo-corpus"}) {
    const ShellOutcome o = call(verb + " --help");
    EXPECT_EQ(o.status, 0) << verb;
    EXPECT_THAT(o.text, HasSubstr("Usage: starling " + verb));
  }
  EXPECT_EQ(call("").status, 2);
}

TEST_F(HelpTest, HelpBeginsWithWhatMostPeopleNeed) {
  const std::string some = call("help train").text, all = call("help train --all").text;
  EXPECT_EQ(some, call("train --help").text);
  EXPECT_EQ(all, call("train --help-all").text);
  EXPECT_THAT(some, HasSubstr("--train.warmup 1000"));
  EXPECT_THAT(some, HasSubstr("(default 4000, but a new"));
  EXPECT_THAT(some, Not(HasSubstr("--train.beta1")));
  EXPECT_THAT(some, HasSubstr("'starling train --help-all' lists all"));
  EXPECT_LT(std::count(some.begin(), some.end(), '\n'), 100);
  for (const char* key : {"--train.warmup", "--train.beta1", "--strategy.periodic.outer-momentum"}) EXPECT_THAT(all, HasSubstr(key));
  EXPECT_THAT(call("help translate").text, Not(HasSubstr("--prune-threshold")));
  EXPECT_THAT(call("translate --help-all").text, HasSubstr("--prune-threshold"));
  EXPECT_THAT(call("help bench distributed").text, HasSubstr("Usage: starling bench distributed"));
  EXPECT_EQ(call("help").text, call("--help").text);
  EXPECT_EQ(call("help help").text, call("--help").text);
}

TEST_F(HelpTest, HelpFitsIntoEightyColumns) {
  for (const char* verb : {"", "train", "translate", "serve", "evaluate", "quantize", "plan", "bench train", "race", "average"}) {
    std::istringstream text(call(std::string("help ") + verb + " --all").text);
    for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 80u) << verb << ": " << line;
  }
}

TEST_F(HelpTest, WhatIsBrokenOffStandsBelowItsText) {
  EXPECT_EQ(wrapped("  --name VALUE    one two three four\nshort\n", 24), "  --name VALUE    one\n    two three four\nshort\n")
      << "the name leaves little room";
  EXPECT_EQ(wrapped("  --n    one two three four", 20), "  --n    one two\n         three four");
  EXPECT_EQ(wrapped("one two three", 8), "one two\nthree");
  EXPECT_EQ(wrapped("averylongword next", 8), "averylongword\nnext") << "a word stays whole";
  EXPECT_EQ(wrapped("\n\n", 8), "\n\n");
}

TEST_F(HelpTest, TheDefaultOfAKeyThatTheCorpusChoosesSaysSo) {
  const std::string help = call("help train --all").text;
  for (const char* key : {"model.preset", "vocab.size", "model.dropout", "train.batch-tokens", "train.max-tokens", "train.learning-rate"}) {
    const size_t at = help.find(fmt::format("--{} ", key)), next = help.find("\n  --", at);
    std::string text = help.substr(at, next - at);
    for (size_t i = 0; (i = text.find_first_of("\n ", i)) != std::string::npos; ++i)
      text.replace(i, text.find_first_not_of("\n ", i) - i, " ");
    EXPECT_THAT(text, HasSubstr(", but a new run has what suits its corpus)")) << key;
  }
}

// Not the words of the library that reads the arguments.
TEST_F(HelpTest, HelpIsPlain) {
  const std::string evaluate = call("help evaluate").text;
  for (const char* part : {"--hypotheses TEXT ... (required)", "--format TEXT (text, json; default text)",
                           "--width NUMBER (0 to 15; default 2)", "--paired-bs-n NUMBER (1 to 10000000; default 1000; with --paired-bs)",
                           "--paired-ar (not with --paired-bs)", "--seed NUMBER (default 12345)"})
    EXPECT_THAT(evaluate, HasSubstr(part));
  EXPECT_THAT(call("help").text, HasSubstr("Usage: starling [OPTIONS] [VERB]"));
  EXPECT_THAT(call("help").text, HasSubstr("\nVerbs:\n"));
  for (const char* verb :
       {"", "train", "translate", "tune-search", "score", "evaluate", "average", "quantize", "bench", "bench vocabulary", "launch"}) {
    const std::string text = call(std::string("help ") + verb + " --all").text;
    for (const char* remnant : {"INT", "TEXT:", "FLOAT", "REQUIRED", "Excludes", "Needs", "ubcommand", "SUBCOMMAND", "Positionals", "=["})
      EXPECT_THAT(text, Not(HasSubstr(remnant))) << verb;
  }
}

TEST_F(HelpTest, TheVersionIsToldUnderEveryName) {
  const std::string version = call("--version").text;
  EXPECT_THAT(version, testing::StartsWith(fmt::format("starling {}\n", kVersion)));
  EXPECT_THAT(version, HasSubstr("oneDNN"));
  EXPECT_THAT(version, testing::ContainsRegex("SentencePiece [0-9]+[.][0-9]"));
  for (const char* name : {"version", "-v", "-V"}) EXPECT_EQ(call(name).text, version) << name;
}

TEST_F(HelpTest, AConfigurationNeedsNoOption) {
  write("my.yml", "train: {seed: 7}\n");
  const std::string with = call("train -c my.yml --dump-config").text;
  EXPECT_THAT(with, HasSubstr("seed: 7"));
  EXPECT_EQ(call("train my.yml --dump-config").text, with);
  EXPECT_EQ(call("train --data.train.0.source a.yml --data.train.0.target b.yml my.yml --dump-config").text,
            call("train -c my.yml --data.train.0.source a.yml --data.train.0.target b.yml --dump-config").text);
}

// docs/start/coming-from.md shows a command of Marian's and ours.
TEST_F(HelpTest, TheExampleOfThePageIsUnderstood) {
  const std::string page = read_text_file(STARLING_SOURCE_DIR "/docs/start/coming-from.md");
  const size_t begin = page.find("\nstarling train --model.preset"), end = page.find("\nstarling translate", begin);
  ASSERT_NE(end, std::string::npos);
  const ShellOutcome dump = call(page.substr(begin + 10, end - begin - 10) + " --dump-config");
  EXPECT_EQ(dump.status, 0) << dump.text;
  EXPECT_THAT(dump.text, HasSubstr("ema: 0.9999"));
  EXPECT_THAT(dump.text, HasSubstr("batch-tokens: 25000"));
}

}  // namespace
}  // namespace starling
