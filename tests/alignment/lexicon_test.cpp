// Lexicons in files: what is written is read, and what is wrong in one is said with its line.
#include "alignment/lexicon.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/own_directory.h"

namespace starling {
namespace {

using testing::HasSubstr;

class LexiconFile : public testing::Test {
 protected:
  // Returns what is said of a file of these lines, empty if nothing is.
  std::string said(const std::string& text) {
    std::ofstream(own_.file("lexicon")) << text;
    try {
      read_lexicon(own_.file("lexicon"), {});
    } catch (const DataError& e) {
      return e.what();
    }
    return "";
  }
  static std::string jumps(const std::string& direction) {
    std::string lines;
    for (int i = -50; i <= 50; ++i) lines += fmt::format("jump\t{}\t{}\t0.5\n", direction, i);
    for (int i = 1; i <= 50; ++i) lines += fmt::format("start\t{}\t{}\t1\n", direction, i);
    return lines;
  }
  const OwnDirectory own_;
};

TEST_F(LexiconFile, IsReadAsItWasWritten) {
  for (const AlignmentModel model : {AlignmentModel::hmm, AlignmentModel::diagonal, AlignmentModel::model1}) {
    Lexicon lexicon;
    lexicon.model = model;
    std::vector<NumberedPair> text;
    for (int i = 0; i < 30; ++i) {
      const std::string a = std::to_string(i % 3), b = std::to_string(i % 5);
      text.push_back({lexicon.source.add({"a" + a, "b" + b, "c"}), lexicon.target.add({"C", "A" + a, "B" + b})});
    }
    AlignerOptions options;
    options.model = model;
    lexicon.forward.emplace(text, options);
    write_lexicon(lexicon, *real_file_system(), own_.file("written.zst"));
    const Lexicon read = read_lexicon(own_.file("written.zst"), {});
    EXPECT_EQ(read.model, model);
    EXPECT_FALSE(read.reverse);
    const auto weights = [](const Lexicon& l, size_t kind) {  // a sentence begins at position 1 or later
      const JumpWidths& w = l.forward->jumps().weights[kind];
      return std::vector(w.begin() + (kind == 1 ? 51 : 0), w.end());
    };
    EXPECT_EQ(weights(read, 0), weights(lexicon, 0));
    EXPECT_EQ(weights(read, 1), weights(lexicon, 1));
    EXPECT_EQ(read.forward->tension(), model == AlignmentModel::diagonal ? lexicon.forward->tension() : 0);
    const AlignedPair before = lexicon.forward->align(text[7]),
                      after = read.forward->align({read.source.known({"a1", "b2", "c"}), read.target.known({"C", "A1", "B2"})});
    EXPECT_EQ(after.links, before.links);
    EXPECT_EQ(after.log_probability, before.log_probability) << static_cast<int>(model);
  }
}

TEST_F(LexiconFile, WrongLinesAreNamed) {
  const std::string hmm = "starling-lexicon-2\twords\thmm\n", word = "forward\thouse\tHaus\t0.5\n";
  EXPECT_EQ(said(hmm + jumps("forward") + word), "");
  EXPECT_THAT(said(""), HasSubstr("is no lexicon"));
  EXPECT_THAT(said("starling-lexicon-1\twords\t1\n"), HasSubstr("lexicon:1: is no lexicon; name a file that"));
  EXPECT_THAT(said("starling-lexicon-2\twords\tmodel4\n"), HasSubstr(":1: is no lexicon"));
  EXPECT_THAT(said(hmm + word), HasSubstr(":2: is the last line, but the weight of a jump is missing"));
  EXPECT_THAT(said(hmm + jumps("forward") + word + "reverse\tHaus\thouse\t0.5\n"), HasSubstr(":154: is the last line"));
  EXPECT_THAT(said(hmm + jumps("forward") + "jump\tforward\t3\t0.5\n"), HasSubstr(":153: says a width again"));
  for (const char* width : {"51", "-51", "x", "", "99999999999999999999"})
    EXPECT_THAT(said(hmm + "jump\tforward\t" + width + "\t0.5\n"), HasSubstr(":2: has a width that no jump has")) << width;
  EXPECT_THAT(said(hmm + "start\tforward\t0\t0.5\n"), HasSubstr(":2: has a width"));
  for (const char* weight : {"0", "-1", "1.5", "nan", "inf", ""})
    EXPECT_THAT(said(hmm + "jump\tforward\t1\t" + weight + "\n"), HasSubstr(":2: has a weight")) << weight;
  EXPECT_THAT(said(hmm + "jump\tforward\t1\n"), HasSubstr(":2: has another number of columns"));
  EXPECT_THAT(said(hmm + "jump\tfor\t1\t1\n"), HasSubstr(":2: names another direction"));
  const std::string diagonal = "starling-lexicon-2\twords\tdiagonal\n";
  EXPECT_EQ(said(diagonal + "tension\tforward\t4\n" + word), "");
  EXPECT_THAT(said(diagonal + word), HasSubstr(":2: is the last line, but a tension is missing"));
  EXPECT_THAT(said(diagonal + "tension\tforward\t-4\n"), HasSubstr(":2: has a tension"));
  const std::string model1 = "starling-lexicon-2\twords\tmodel1\n";
  EXPECT_EQ(said(model1 + word), "");
  EXPECT_THAT(said(model1 + "forward\thouse\tHaus\t-0.5\n"), HasSubstr(":2: has a probability"));
  EXPECT_THAT(said(model1 + "forward\thouse\t\t0.5\n"), HasSubstr(":2: has no target"));
}

}  // namespace
}  // namespace starling
