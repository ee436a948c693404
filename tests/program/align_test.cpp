// `starling align` as users start it.
#include <gmock/gmock.h>

#include <algorithm>

#include "base/files.h"
#include "tests/program/called.h"

namespace starling {
namespace {

using testing::HasSubstr;

class AlignVerb : public CalledTest {};

TEST_F(AlignVerb, WritesLinksThatTrainingReads) {
  std::string a, b;  // three of ten words, and their partners backwards
  for (int i = 0; i < 300; ++i) {
    const int x = i * i % 10, y = (i / 3 + 1) % 10, z = (7 * i + 3) % 10;
    a += fmt::format("a{} a{} a{}\n", x, y, z), b += fmt::format("b{} b{} b{}\n", z, y, x);
  }
  write("a", a), write("b", b);
  ShellOutcome o = call("align --source a --target b --model model1 -o links --scores scores --iterations 10");
  ASSERT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("trained on 300 pairs"));
  ASSERT_EQ(call("align --source a --target b --model model1 --iterations 10 --quiet --threads 1 -o again").text, "");
  const auto files = real_file_system();
  EXPECT_EQ(files->read_file(path("links")), files->read_file(path("again")));
  EXPECT_THAT(files->read_file(path("links")), HasSubstr("0-2 1-1 2-0\n0-2 1-1 2-0\n0-2 1-1 2-0\n"));
  const std::string scores = files->read_file(path("scores"));
  EXPECT_EQ(std::count(scores.begin(), scores.end(), '\n'), 300);
  ASSERT_EQ(call("align --source a --target b --model model1 --iterations 10 --quiet --save lexicon.zst -o again").text, "");
  o = call("align --source a --target b --load lexicon.zst -o loaded");
  EXPECT_THAT(o.text, HasSubstr("by what lexicon.zst has learnt"));
  EXPECT_EQ(files->read_file(path("links")), files->read_file(path("loaded")));
  // With the prior for the diagonal, which the file must say, the links are others.
  for (const char* model : {"diagonal", "hmm"}) {
    ASSERT_EQ(call(fmt::format("align --source a --target b --model {0} --iterations 3 --quiet --save {0}.zst -o {0}", model)).text, "");
    ASSERT_EQ(call(fmt::format("align --source a --target b --quiet --load {}.zst -o loaded", model)).text, "");
    EXPECT_EQ(files->read_file(path(model)), files->read_file(path("loaded"))) << model;
    EXPECT_NE(files->read_file(path(model)), files->read_file(path("links"))) << model;
  }
  EXPECT_NE(files->read_file(path("diagonal")), files->read_file(path("hmm")));
  EXPECT_THAT(call("align --source a --target b --as-fast-align -o x").text, HasSubstr("add --model diagonal"));
  EXPECT_THAT(call("align --source a --target b --load lexicon.zst --model hmm -o x").text, HasSubstr("--load excludes --model"));
  EXPECT_THAT(call("align --source a --target b --load lexicon.zst --parts spaces -o x").text, HasSubstr("--parts words; give that"));
  EXPECT_THAT(call("align --source a --target b --load a -o x").text, HasSubstr("a:1: is no lexicon; name a file that"));
  EXPECT_THAT(call("align --source a --target b --save ./links -o links").text, HasSubstr("--save needs a file of its own"));
  EXPECT_THAT(call("align --source a --target b --save a -o x").text, HasSubstr("--save a is the same file"));
  o = call(
      "train --data.source a --data.target b --data.alignment links --train.output run --vocab.size 30 --model.preset transformer-tiny "
      "--train.max-steps 2 --train.threads 1");
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(call("align --source a --target b --parts pieces").text, HasSubstr("name it with --vocab"));
  EXPECT_THAT(call("align --source a --target b -o a").text, HasSubstr("--output"));
  EXPECT_THAT(call("align --source a --target b --parts pieces --vocab run/vocab.spm -o run/vocab.spm").text, HasSubstr("--output"));
  EXPECT_THAT(call("align --source a --target b -o same --scores ./same").text, HasSubstr("--scores needs a file of its own"));
  EXPECT_THAT(call("align --source a").text, HasSubstr("lacks its other side"));
}

}  // namespace
}  // namespace starling
