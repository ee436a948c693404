// Guided attention as users meet it: the head that was guided shows the alignment of the training text, even one that no head would find.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/text_files.h"
#include "tests/program/called.h"
#include "tests/run/word_pairs.h"

namespace starling {
namespace {

using testing::HasSubstr;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Where Marian takes them: the first head of the last decoder layer; NumPy's reading of the same weights.
class ImportedAlignment : public CalledTest {};

TEST_F(ImportedAlignment, IsThatOfMariansHead) {
  const std::string fixture = STARLING_SOURCE_DIR "/tests/fixtures/marian/";
  for (const std::string name : {"ssru", "post"}) {
    ASSERT_EQ(call(fmt::format("import {0}{1} --vocab {0}v.spm -o {1}", fixture, name)).status, 0);
    ASSERT_EQ(
        call(fmt::format("score -m {1} --source {0}s.en --target {0}s.de --threads 1 --alignment pieces -o scores", fixture, name)).status,
        0);
    const std::vector<std::string> found = lines_of(read_text_file(path("scores"))),
                                   expected = lines_of(read_text_file(fixture + name + "/alignments.txt"));
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].substr(found[i].find('\t') + 1), expected[i]) << name << " line " << i;
  }
}

class AlignmentTest : public CalledTest {
 protected:
  // Word pairs, and links that say of each word that it comes from the other end of the sentence.
  void SetUp() override {
    write_word_pairs(path("a"), path("b"), 300, 8, 3, 4);
    for (const std::string& line : lines_of(read_text_file(path("a")))) {
      const auto words = std::count(line.begin(), line.end(), ' ');
      for (int64_t w = 0; w < words; ++w) backwards_ += fmt::format("{}{}-{}", w > 0 ? " " : "", words - 1 - w, w);
      backwards_ += "\n";
    }
    write("links", backwards_);
  }
  ShellOutcome train(const std::string& options, int updates) const {
    return call(
        fmt::format("train --vocab.size 40 --model.preset transformer-tiny --model.width 32 --model.feed-forward 64 --model.heads 2 "
                    "--train.batch-tokens 400 --train.threads 1 --train.precision f32 --train.warmup 10 "
                    "--train.learning-rate 3e-3 --train.max-steps {} --log.every 10 {}",
                    updates, options));
  }

  std::string backwards_;
};

TEST_F(AlignmentTest, AGuidedHeadFollowsTheLinks) {
  ASSERT_EQ(train("--data.source a --data.target b --data.alignment links --train.guided-alignment 1 --train.output run", 1200).status, 0);
  EXPECT_THAT(read_text_file(path("run/train.log")), HasSubstr("alignment "));
  EXPECT_EQ(call("score -m run --source a --target b --threads 1 --alignment words -o scores").status, 0);
  std::string links;
  for (const std::string& line : lines_of(read_text_file(path("scores")))) links += line.substr(line.find('\t') + 1) + "\n";
  write("found", links);
  const ShellOutcome error = call("evaluate --metrics aer --hypotheses found --references links");
  ASSERT_EQ(error.status, 0) << error.text;
  const double aer = std::stod(error.text.substr(error.text.find(" = ") + 3));
  EXPECT_LT(aer, 10) << error.text;
  // Words are those of the line that is given, whatever its pieces are decoded to.
  write("odd.a", "red dog house\n"), write("odd.b", "sees\u00a0漢 tree cat\n");
  const ShellOutcome odd = call("score -m run --source odd.a --target odd.b --threads 1 --alignment words");
  EXPECT_THAT(odd.text, HasSubstr("-2"));
  EXPECT_EQ(odd.text.find("-3"), std::string::npos) << odd.text;
  // The head stays the model's when a later start guides nothing.
  ASSERT_EQ(train("--data.source a --data.target b --data.alignment links --train.guided-alignment 0 --train.output run", 1210).status, 0);
  EXPECT_THAT(read_text_file(path("run/config.yml")), HasSubstr("alignment-head: 1"));
  // A translation shows what the same head attends to.
  write("one", "red dog house\n");
  const ShellOutcome translation = call("translate -m run -i one --threads 1 --alignment words");
  EXPECT_THAT(translation.text, HasSubstr("sees tree cat ||| 0-2 1-1 2-0"));
}

TEST_F(AlignmentTest, AColumnIsAsGoodAsAFile) {
  std::string tsv;
  const auto a = lines_of(read_text_file(path("a"))), b = lines_of(read_text_file(path("b"))), links = lines_of(backwards_);
  for (size_t i = 0; i < a.size(); ++i) tsv += a[i] + "\t" + b[i] + "\t" + links[i] + "\n";
  write("tsv", tsv);
  ASSERT_EQ(train("--data.source a --data.target b --data.alignment links --train.output file", 20).status, 0);
  ASSERT_EQ(train("--data.tsv tsv --data.alignment column --train.output column", 20).status, 0);
  ASSERT_EQ(train("--data.source a --data.target b --data.alignment links --train.guided-alignment 0 --train.output off", 20).status, 0);
  const auto model = [&](const std::string& run) { return read_text_file(path(run + "/checkpoints/step-00000020/model.safetensors")); };
  EXPECT_EQ(model("file"), model("column"));
  EXPECT_NE(model("file"), model("off"));
  EXPECT_THAT(read_text_file(path("file/config.yml")), HasSubstr("alignment-head: 1"));
}

TEST_F(AlignmentTest, WhatCannotBeGuidedIsRefused) {
  EXPECT_THAT(train("--data.source a --data.target b --data.alignment links --model.alignment-layer 3 --train.output run", 5).text,
              HasSubstr("model.alignment-layer 3 is beyond the 2 of model.decoder-layers"));
  EXPECT_THAT(train("--data.source a --data.target b --data.alignment links --model.alignment-head 3 --train.output run", 5).text,
              HasSubstr("model.alignment-head 3 is beyond the 2 of model.heads"));
  EXPECT_THAT(train("--data.source a --data.target b --data.alignment links --parallel.tensor 2 --train.output run", 5).text,
              HasSubstr("parallel.tensor divides the heads"));
  EXPECT_THAT(call("train --data.source a --data.target b --data.alignment links --model.preset gnmt-small --train.output run").text,
              HasSubstr("cannot be guided"));
}

}  // namespace
}  // namespace starling
