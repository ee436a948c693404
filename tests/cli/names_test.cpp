// Names that people bring from elsewhere, mistyped names, and the help that shows ours.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "base/text_files.h"
#include "cli/verbs.h"
#include "config/config.h"
#include "migration/peer_names.h"
#include "program/help.h"
#include "tests/cli/program.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class NamesTest : public ProgramTest {
 protected:
  // What the program says of wrong usage; it ends with status 2.
  std::string refused(const std::string& arguments) const {
    const ShellOutcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments << ": " << outcome.text;
    return outcome.text;
  }
};

TEST_F(NamesTest, EveryOptionOfTheTableExists) {
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

TEST_F(NamesTest, OtherProgramsNamesAreAnsweredWithOurs) {
  const struct {
    const char *arguments, *answer;
  } misses[] = {
      {"train --lr 1e-3", "there is no option '--lr'; fairseq's --lr is --train.learning-rate here"},
      {"train --train.lr 1e-3", "there is no option '--train.lr'; fairseq's --lr is --train.learning-rate here"},
      {"train --batch-size 64", "is --train.batch-tokens here (target tokens of a whole update"},
      {"train --epochs 10", "there is no option '--epochs'; it is --train.max-epochs here"},
      {"train --max-updates 10", "Sockeye's --max-updates is --train.max-steps here"},
      {"train --beam-size 4", "--beam-size is --valid.beam here (the same number)"},
      {"train --normalize 0.6", "Marian's --normalize is --valid.length-penalty here (another formula"},
      {"train --gpu 0", "is --train.device here (cuda, or cuda:1 for the second card"},
      {"train --devices 0 1", "Marian's --devices is --train.device here (cuda, or cuda:1"},
      {"train --workspace 9000", "Marian's --workspace has no counterpart here: what fits into memory is determined automatically"},
      {"train --train-sets a b", "Marian's --train-sets are --data.source and --data.target here (one file per side)"},
      {"train --model.dim 512", "there is no option '--model.dim'; it is --model.width here"},
      {"train --mini-batch 64", "Marian's --mini-batch is --train.batch-tokens here (target tokens, not sentences"},
      {"train --Update_Freq 4", "fairseq's --update-freq is --train.batch-tokens here"},
      {"train --n-best 4", "--n-best is --n-best of 'starling translate' here"},
      {"simulate --lr 1e-3", "fairseq's --lr is --train.learning-rate here"},
      {"translate --beam-size 4",
       "there is no option '--beam-size'; Marian's, OpenNMT-py's and Sockeye's --beam-size is --beam here (the same number)"},
      {"translate --normalize 0.6", "Marian's --normalize is --length-penalty here (another formula"},
      {"translate --batch_size 4", "--batch_size is --batch-size here (sentences)"},
      {"translate --mini-batch 4", "Marian's --mini-batch is --batch-size here (sentences)"},
      {"translate --devices 0", "Marian's --devices is --device here"},
      {"translate --gpu 0", "is --device here"},
      {"translate --lr 1", "fairseq's --lr is train.learning-rate of 'starling train' here"},
      {"train --valid.tsv dev.tsv",
       "'--valid.tsv'; it has no counterpart here: the validation text is one file per side, valid.source and valid.target"},
      {"train --src_prefix '<2de>'", "OpenNMT-py's --src_prefix has no counterpart here: a corpus has a tag: data.train.0.tag"},
      {"train --data.train.0.src_prefix '<2de>'", "OpenNMT-py's src_prefix has no counterpart here: a corpus has a tag: data.train.0.tag"},
      {"translate --prefix-size 1", "fairseq's --prefix-size is --target-prefix here (the pieces themselves, the same for all lines)"},
      {"train -T /tmp", "Marian's -T has no counterpart here: everything is in the run directory"},
      {"train -t a b", "Marian's -t are --data.source and --data.target here"},
      {"translate -c decoder.yml", "Marian's -c has no counterpart here: the model directory has the search settings (decode.yml)"},
      {"score --summary", "Marian's --summary has no counterpart here: 'starling score' prints one line per sentence"},
      {"evaluate -m bleu", "sacreBLEU's -m is --metrics here (bleu, chrf, chrf++, ter, gleu)"},
      {"evaluate -b", "sacreBLEU's -b is --format here (json; its score is the number alone)"},
      {"evaluate -w 4", "sacreBLEU's -w is --width here"},
      {"evaluate -t wmt20", "sacreBLEU's -t is --references here (the file; no test sets are fetched)"},
      {"evaluate -l en-de", "sacreBLEU's -l is --tokenize here (languages are not named"},
      {"evaluate -lc", "sacreBLEU's -lc is --lowercase here"},
      {"evaluate -tok 13a", "sacreBLEU's -tok is --tokenize here"},
      {"evaluate -i out.txt", "sacreBLEU's -i is --hypotheses here"},
      {"evaluate --confidence", "sacreBLEU's --confidence is --paired-bs here"},
      {"evaluate --smooth-method exp", "has no counterpart here: BLEU is smoothed with sacreBLEU's default, exp"},
      {"train --valid.metrics bleu-detok", "; did you mean bleu?"},
      {"train --model.preset tiny", "; did you mean transformer-tiny?"},
      {"train --valid.every 10u", "; did you mean 10?"},
      {"marian-train", "Marian's marian-train is train here."},
      {"marian-server", "Marian's marian-server is serve here (over HTTP; for a pipe use translate"},
      {"spm_train", "it is not needed here: 'train' makes the vocabulary when its file is missing."},
      {"spm_encode", "it is not needed here: raw text comes in and goes out."},
      {"score --src a", "OpenNMT-py's --src is --source here"},
      {"quantize --valid-sets a b", "Marian's --valid-sets are --source and --target here"},
      {"tune-search --beam-size 4", "is --beam here (the same number)"},
      {"decode", "there is no verb 'decode'; Marian's decode is translate here."},
      {"sockeye-train", "Sockeye's sockeye-train is train here."},
      {"preprocess", "preprocess is not needed here: 'train' reads raw text"},
  };
  for (const auto& miss : misses) EXPECT_THAT(refused(miss.arguments), HasSubstr(miss.answer)) << miss.arguments;
}

TEST_F(NamesTest, NearMissesOfKeysAndOfWordsInThem) {
  const struct {
    const char *arguments, *answer;
  } misses[] = {
      {"train --train.batch-token 3", "; did you mean '--train.batch-tokens'? Or see 'starling help train --all'"},
      {"train --model.encoder-layer 3", "; did you mean '--model.encoder-layers'?"},
      {"train --valid.metric bleu", "; did you mean '--valid.metrics'?"},
      {"train --every 3", "; did you mean '--valid.every', '--checkpoint.every' or '--log.every'?"},
      {"train --train.preset x", "; did you mean '--model.preset'?"},
      {"train --smoothing 0.1", "; did you mean '--train.label-smoothing'?"},
      {"train --train-max-steps 3", "; did you mean '--train.max-steps'?"},
      {"train --precison f32", "; did you mean '--precision'?"},
      {"evaluate --hyp a", "; did you mean '--hypotheses'?"},
  };
  for (const auto& miss : misses) EXPECT_THAT(refused(miss.arguments), HasSubstr(miss.answer)) << miss.arguments;
  for (const char* far : {"train --train.xy 3", "train --train.foo 3", "train --zzz 3", "translate --frobnicate"})
    EXPECT_THAT(refused(far), Not(HasSubstr("did you mean"))) << far;
}

TEST_F(NamesTest, HelpBeginsWithWhatMostPeopleNeed) {
  const std::string some = run("help train").text, all = run("help train --all").text;
  EXPECT_EQ(some, run("train --help").text);
  EXPECT_EQ(all, run("train --help-all").text);
  EXPECT_THAT(some, HasSubstr("--train.warmup 1000"));
  EXPECT_THAT(some, Not(HasSubstr("--train.beta1")));
  EXPECT_THAT(some, HasSubstr("'starling train --help-all' lists all"));
  EXPECT_LT(std::count(some.begin(), some.end(), '\n'), 100);
  for (const char* key : {"--train.warmup", "--train.beta1", "--strategy.periodic.outer-momentum"}) EXPECT_THAT(all, HasSubstr(key));
  EXPECT_THAT(run("help translate").text, Not(HasSubstr("--prune-threshold")));
  EXPECT_THAT(run("translate --help-all").text, HasSubstr("--prune-threshold"));
  EXPECT_THAT(run("help bench distributed").text, HasSubstr("Usage: starling bench distributed"));
  EXPECT_EQ(run("help").text, run("--help").text);
  EXPECT_EQ(run("help help").text, run("--help").text);
}

TEST_F(NamesTest, HelpFitsIntoEightyColumns) {
  for (const char* verb : {"", "train", "translate", "serve", "evaluate", "quantize", "plan", "bench train", "race", "average"}) {
    std::istringstream text(run(std::string("help ") + verb + " --all").text);
    for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 80u) << verb << ": " << line;
  }
}

TEST_F(NamesTest, WhatIsBrokenOffStandsBelowItsText) {
  EXPECT_EQ(wrapped("  --name VALUE    one two three four\nshort\n", 24), "  --name VALUE    one\n    two three four\nshort\n")
      << "the name leaves little room";
  EXPECT_EQ(wrapped("  --n    one two three four", 20), "  --n    one two\n         three four");
  EXPECT_EQ(wrapped("one two three", 8), "one two\nthree");
  EXPECT_EQ(wrapped("averylongword next", 8), "averylongword\nnext") << "a word stays whole";
  EXPECT_EQ(wrapped("\n\n", 8), "\n\n");
}

// What --help leaves out is found where the message says.
TEST_F(NamesTest, MessagesNameTheHelpThatListsAll) {
  EXPECT_THAT(refused("train --frobnicate 1"), HasSubstr("there is no option '--frobnicate'; see 'starling help train --all'"));
  EXPECT_THAT(refused("serve --frobnicate 1"), HasSubstr("see 'starling help serve --all'"));
  EXPECT_THAT(refused("evaluate --frobnicate 1"), HasSubstr("see 'starling evaluate --help'"));
}

TEST_F(NamesTest, TheDefaultOfAKeyThatTheCorpusChoosesSaysSo) {
  const std::string help = run("help train --all").text;
  for (const char* key : {"model.preset", "vocab.size", "model.dropout", "train.batch-tokens", "train.max-tokens", "train.learning-rate"}) {
    const size_t at = help.find(fmt::format("--{} ", key)), next = help.find("\n  --", at);
    std::string text = help.substr(at, next - at);
    for (size_t i = 0; (i = text.find_first_of("\n ", i)) != std::string::npos; ++i)
      text.replace(i, text.find_first_not_of("\n ", i) - i, " ");
    EXPECT_THAT(text, HasSubstr(", but a new run has what suits its corpus)")) << key;
  }
}

TEST_F(NamesTest, PathsWithoutAnOptionAreAnsweredWithTheirOption) {
  write("lines", "a\n");
  std::filesystem::create_directories(path("model")), std::filesystem::create_directories(path("run"));
  write("run/config.yml", "");
  EXPECT_THAT(refused("translate model lines"),
              HasSubstr("unexpected argument 'model'; did you mean --model model? Or see 'starling help"));
  EXPECT_THAT(refused("translate --model model lines"), HasSubstr("unexpected argument 'lines'; did you mean --input lines?"));
  EXPECT_THAT(refused("translate none"), HasSubstr("unexpected argument 'none'; did you mean --model none or --input none?"));
  EXPECT_THAT(refused("score --model model lines"), HasSubstr("did you mean --source lines?"));
  EXPECT_THAT(refused("evaluate lines"), HasSubstr("did you mean --hypotheses lines?"));
  EXPECT_THAT(refused("quantize model out"), HasSubstr("did you mean --model model?"));
  EXPECT_THAT(refused("serve model"), HasSubstr("did you mean --model model?"));
  EXPECT_THAT(refused("train lines"), HasSubstr("did you mean --data.source lines?"));
  EXPECT_THAT(refused("train run"), HasSubstr("unexpected argument 'run'; to continue the run in it: starling train run/config.yml; see"));
}

// A number alone is in the option's unit, as ever.
TEST_F(NamesTest, DurationsOfOptionsMayHaveUnits) {
  for (const char* good : {"90", "1m30s", "90s", "1.5m"})
    EXPECT_THAT(refused(std::string("serve --deadline ") + good), HasSubstr("--model is required")) << good;
  EXPECT_THAT(refused("serve --deadline 5x --model m"),
              HasSubstr("--deadline: '5x' is neither a number of seconds nor a duration such as 90s, 12m or 1h30m"));
  EXPECT_THAT(refused("serve --max-wait 3d --model m"), HasSubstr("--max-wait: Value 3d not in range [0.001 - 86400]"));
  EXPECT_THAT(refused("tune --budget 1x"), HasSubstr("--budget '1x' is not a duration; give hours or minutes, such as 2h, 45m or 1h30m"));
  EXPECT_THAT(run("train --train.max-minutes 1h30m --dump-config").text, HasSubstr("max-minutes: 90\n"));
}

// Not the words of the library that reads the arguments.
TEST_F(NamesTest, HelpIsPlain) {
  const std::string evaluate = run("help evaluate").text;
  for (const char* part : {"--hypotheses TEXT ... (required)", "--format TEXT (text, json; default text)",
                           "--width NUMBER (0 to 15; default 2)", "--paired-bs-n NUMBER (1 to 10000000; default 1000; with --paired-bs)",
                           "--paired-ar (not with --paired-bs)", "--seed NUMBER (default 12345)"})
    EXPECT_THAT(evaluate, HasSubstr(part));
  EXPECT_THAT(run("help").text, HasSubstr("Usage: starling [OPTIONS] [VERB]"));
  EXPECT_THAT(run("help").text, HasSubstr("\nVerbs:\n"));
  for (const char* verb :
       {"", "train", "translate", "tune-search", "score", "evaluate", "average", "quantize", "bench", "bench vocabulary", "launch"}) {
    const std::string text = run(std::string("help ") + verb + " --all").text;
    for (const char* remnant : {"INT", "TEXT:", "FLOAT", "REQUIRED", "Excludes", "Needs", "ubcommand", "SUBCOMMAND", "Positionals", "=["})
      EXPECT_THAT(text, Not(HasSubstr(remnant))) << verb;
  }
}

TEST_F(NamesTest, TheVersionIsToldUnderEveryName) {
  const std::string version = run("--version").text;
  EXPECT_THAT(version, testing::ContainsRegex("SentencePiece [0-9]+[.][0-9]"));
  for (const char* name : {"version", "-v", "-V"}) EXPECT_EQ(run(name).text, version) << name;
}

TEST_F(NamesTest, HelpOnNoVerbIsWrongUsage) {
  EXPECT_THAT(refused("nonsense --help"), HasSubstr("there is no verb 'nonsense'. The verbs are train, "));
  EXPECT_THAT(refused("trian --help"), HasSubstr("there is no verb 'trian'; did you mean 'train'?"));
  EXPECT_THAT(refused("help trian"), HasSubstr("did you mean 'train'?"));
  EXPECT_THAT(refused("bench trian --help"), HasSubstr("did you mean 'train'? The verbs are train, translate, distributed"));
}

TEST_F(NamesTest, AConfigurationNeedsNoOption) {
  write("my.yml", "train: {seed: 7}\n");
  const std::string with = run("train -c my.yml --dump-config").text;
  EXPECT_THAT(with, HasSubstr("seed: 7"));
  EXPECT_EQ(run("train my.yml --dump-config").text, with);
  EXPECT_EQ(run("train --data.train.0.source a.yml --data.train.0.target b.yml my.yml --dump-config").text,
            run("train -c my.yml --data.train.0.source a.yml --data.train.0.target b.yml --dump-config").text);
  EXPECT_THAT(refused("train my.yml -c my.yml"), HasSubstr("two configurations, 'my.yml' and 'my.yml'; give one"));
  EXPECT_THAT(refused("simulate my.yml"), HasSubstr("no training corpus"));
  EXPECT_EQ(run("train none.yml").status, 3);
  EXPECT_THAT(refused("train my.txt"), HasSubstr("unexpected argument 'my.txt'"));
}

// docs/start/coming-from.md shows a command of Marian's and ours.
TEST_F(NamesTest, TheExampleOfThePageIsUnderstood) {
  const std::string page = read_text_file(STARLING_SOURCE_DIR "/docs/start/coming-from.md");
  const size_t begin = page.find("\nstarling train --model.preset"), end = page.find("\nstarling translate", begin);
  ASSERT_NE(end, std::string::npos);
  const ShellOutcome dump = run(page.substr(begin + 10, end - begin - 10) + " --dump-config");
  EXPECT_EQ(dump.status, 0) << dump.text;
  EXPECT_THAT(dump.text, HasSubstr("ema: 0.9999"));
  EXPECT_THAT(dump.text, HasSubstr("batch-tokens: 25000"));
}

TEST_F(NamesTest, TheProcessIsCalledStarling) {
  write("references", "a\n");
  const std::string fifo = path("hypotheses");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    unsetenv("GOMP_SPINCOUNT"), unsetenv("OMP_WAIT_POLICY");
    dup2(open("/dev/null", O_WRONLY), 1), dup2(1, 2);
    execl(STARLING_BINARY, STARLING_BINARY, "evaluate", "--hypotheses", fifo.c_str(), "--references", path("references").c_str(), nullptr);
    _exit(98);
  }
  int file = -1;  // somebody reads the other end: the program has passed its second start
  for (int i = 0; i < 2000 && (file = open(fifo.c_str(), O_WRONLY | O_NONBLOCK)) < 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(file, 0);
  EXPECT_EQ(read_text_file(fmt::format("/proc/{}/comm", pid)), "starling\n");
  EXPECT_EQ(::write(file, "a\n", 2), 2);
  close(file);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace starling
