// `starling clean` as users start it, and training with what it writes.
#include <gmock/gmock.h>

#include "tests/program/called.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;

class CleanVerb : public CalledTest {};

TEST_F(CleanVerb, WritesWhatTrainingReads) {
  write("a", "one two three\nThe  yard &amp; the house\none two three\nIn 1492 he sailed.\n" + seeing(60, true));
  write("b", "three two one\nDer Hof und das Haus\nThree two one!\nIm Jahre 1776 segelte er.\n" + seeing(60, false));
  write("valid.a", "see ab now\n"), write("valid.b", "siehe ba jetzt\n");
  write("given.yml",
        "data: {train: [{source: a, target: b, weight: 2}]}\nvalid: {source: valid.a, target: valid.b}\ntrain: {batch-tokens: 300}\n"
        "clean: {copies: targets}\n");
  ShellOutcome o = call("clean given.yml -o cleaned");
  ASSERT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("of 64 pairs kept"));
  EXPECT_THAT(o.text, HasSubstr("dropped  digits"));
  EXPECT_THAT(o.text, HasSubstr("train with train.yml"));
  o = call("train cleaned/train.yml --dump-config minimal");
  ASSERT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("tsv: cleaned/kept.tsv.zst"));
  EXPECT_THAT(o.text, HasSubstr("weight: 2"));
  EXPECT_THAT(o.text, Not(HasSubstr("clean:")));
  o = run(
      "train cleaned/train.yml --train.output run --vocab.size 60 --model.preset transformer-tiny --train.max-steps 2 --train.threads 1");
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(call("clean given.yml -o cleaned").text, HasSubstr("cleaned: exists already; give --output a new name or remove it"));
  EXPECT_THAT(call("clean --data.source a --data.target b --clean.max-ration 3 -o c").text, HasSubstr("did you mean '--clean.max-ratio'"));
}

TEST_F(CleanVerb, HelpShowsItsKeys) {
  const std::string help = call("clean --help").text;
  for (const char* key : {"--clean.max-ratio 4", "--clean.copies targets", "--memory SIZE"}) EXPECT_THAT(help, HasSubstr(key));
  EXPECT_THAT(help, Not(HasSubstr("--train.learning-rate")));
}

// A section `clean` has the text cleaned into the run before anything else, once.
TEST_F(CleanVerb, ATrainingCleansItsText) {
  write("a", "one two three\nIn 1492 he sailed.\n" + seeing(60, true));
  write("b", "three two one\nIm Jahre 1776 segelte er.\n" + seeing(60, false));
  write("given.yml",
        "data: {source: a, target: b}\nclean: {before-training: true, copies: off}\nvocab: {size: 60}\nmodel: {preset: transformer-tiny}\n"
        "train: {batch-tokens: 300, max-steps: 2, threads: 1, output: run}\n");
  ShellOutcome o = run("train given.yml");
  ASSERT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("cleaning the training text first"));
  EXPECT_THAT(o.text, HasSubstr("61 of 62 pairs kept"));
  EXPECT_THAT(o.text, HasSubstr("data: 61 pairs, 61 kept"));
  for (const char* again : {"train given.yml --train.max-steps 3", "train run/config.yml --train.max-steps 4"}) {
    o = run(again);
    EXPECT_EQ(o.status, 0) << o.text;
    EXPECT_THAT(o.text, Not(HasSubstr("cleaning the training text")));
  }
  o = run("train given.yml --clean.copies targets --train.max-steps 5");
  EXPECT_EQ(o.status, 2);
  EXPECT_THAT(o.text, HasSubstr("run/cleaned: was cleaned from other text, or with other keys of the section clean"));
  o = run("train given.yml --clean.before-training false --train.output other");
  EXPECT_EQ(o.status, 2);
  EXPECT_THAT(o.text, HasSubstr("set clean.before-training: true, or run 'starling clean'"));
  EXPECT_THAT(call("clean given.yml -o run/cleaned").text, HasSubstr("belongs to the run"));
}

TEST_F(CleanVerb, TakesTextOfOneLanguage) {
  write("a",
        "The yard is empty today.\nthe yard is empty today\nOK\n<b>bold</b> words here\nha ha ha ha ha ha ha\n"
        "Der Hof ist heute leer, und das Haus steht auch nicht mehr da.\nThe harbour master closed the gate early.\n");
  write("valid.a", "The harbour master closed the gate early!\n"), write("valid.b", "Der Hafenmeister schloss das Tor.\n");
  const ShellOutcome o = call(
      "clean --monolingual a --data.source-language en --data.target-language de --valid.source valid.a --valid.target valid.b -o out");
  ASSERT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("2 of 7 lines kept"));
  for (const char* rule : {"markup", "repetition", "language", "held-out", "duplicate"}) EXPECT_THAT(o.text, HasSubstr(rule));
  EXPECT_THAT(call("clean --monolingual a --data.tsv b -o c").text, HasSubstr("clean the two one after the other"));
  EXPECT_THAT(call("clean --monolingual missing -o c").text, HasSubstr("missing"));
}

}  // namespace
}  // namespace starling
