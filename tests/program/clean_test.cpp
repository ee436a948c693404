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
  EXPECT_THAT(o.text, HasSubstr("train with its train.yml"));
  o = call("train cleaned/train.yml --dump-config minimal");
  ASSERT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("tsv: cleaned/kept.tsv.zst"));
  EXPECT_THAT(o.text, HasSubstr("weight: 2"));
  EXPECT_THAT(o.text, Not(HasSubstr("clean:")));
  o = run(
      "train cleaned/train.yml --train.output run --vocab.size 60 --model.preset transformer-tiny --train.max-steps 2 --train.threads 1");
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(call("clean given.yml -o cleaned").text, HasSubstr("cleaned: exists already; give --output a new name or remove it"));
  o = call("train given.yml --train.output other");
  EXPECT_EQ(o.status, 2);
  EXPECT_THAT(o.text, HasSubstr("run 'starling clean' with this configuration first"));
  EXPECT_THAT(call("clean --data.source a --data.target b --clean.max-ration 3 -o c").text, HasSubstr("did you mean '--clean.max-ratio'"));
}

}  // namespace
}  // namespace starling
