// `starling calibrate` and `translate --confidence`: how many words are right is known, since the references are the model's own
// translations with some of their words changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "base/text_files.h"
#include "storage/publication.h"
#include "tests/program/called.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const std::string kOther = STARLING_SOURCE_DIR "/tests/fixtures/models/gnmt-clip/model";

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) all.push_back(part);
  return all;
}

size_t count_words(const std::string& text) {
  std::istringstream in(text);
  size_t count = 0;
  for (std::string word; in >> word;) ++count;
  return count;
}

// What `--confidence` writes behind a text.
struct Line {
  std::string text;
  double sentence = 0;
  std::vector<double> words;
};
Line parsed(const std::string& line) {
  const size_t bars = line.find(" ||| Confidence= "), words = line.find(" WordConfidence=");
  if (bars == std::string::npos || words == std::string::npos) {
    ADD_FAILURE() << line;
    return {};
  }
  Line l{line.substr(0, bars), std::stod(line.substr(bars + 17)), {}};
  std::istringstream in(line.substr(words + 16));
  for (double value; in >> value;) l.words.push_back(value);
  return l;
}

class CalibrateTest : public CalledTest {
 protected:
  // A text of 200 lines and, as its reference, its translation by a tiny model; of the latter half of the lines every other word is
  // changed.
  void SetUp() override {
    write("source", seeing(200, true)), write("b", seeing(200, false));
    const ShellOutcome o = call(
        "train --data.source source --data.target b --train.output run --vocab.size 60 --model.preset transformer-tiny --model.width 32 "
        "--model.feed-forward 64 --model.heads 2 --train.batch-tokens 400 --train.threads 1 --train.precision f32 --train.warmup 20 "
        "--train.learning-rate 1e-2 --train.max-steps 150");
    ASSERT_EQ(o.status, 0) << o.text;
    fs::copy(path("run/checkpoints/step-00000150"), path("model"));
    int line = 0;
    std::string reference;
    for (const std::string& translation : split(translate("--model model -i source"), '\n')) {
      std::istringstream in(translation);
      int word = 0;
      for (std::string w; in >> w; ++word, ++words_) {
        const bool right = line < 100 || word % 2 == 0;
        right_ += right;
        reference += (word > 0 ? " " : "") + (right ? w : fmt::format("other{}", word));
      }
      reference += "\n", ++line;
    }
    write("reference", reference);
  }
  std::string translate(const std::string& arguments) const {
    const ShellOutcome o = call("translate --quiet --threads 1 --precision f32 " + arguments);
    EXPECT_EQ(o.status, 0) << o.text;
    return o.text;
  }
  ShellOutcome calibrate(const std::string& arguments = "") const {
    return call("calibrate --source source --target reference --threads 1 --precision f32 --model model " + arguments);
  }

  int words_ = 0, right_ = 0;
};

TEST_F(CalibrateTest, PredictsAsManyAsAreRight) {
  const std::string weights = read_text_file(path("model/model.safetensors"));
  const ShellOutcome o = calibrate();
  ASSERT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr(fmt::format("{} words in 200 sentences, {:.1f} % of them right", words_, 100.0 * right_ / words_)));
  EXPECT_THAT(o.text, HasSubstr("written to model/confidence.json"));
  EXPECT_TRUE(verify_directory(*real_file_system(), path("model")).has("confidence.json"));
  EXPECT_EQ(read_text_file(path("model/model.safetensors")), weights);
  EXPECT_EQ(nlohmann::json::parse(read_text_file(path("model/confidence.json")))["fitted_on"]["words"], words_);

  // Maximum likelihood: over the text, the probabilities of the words sum up to the number of those that are right.
  const std::vector<std::string> lines = split(translate("--model model -i source --confidence"), '\n'),
                                 plain = split(translate("--model model -i source"), '\n');
  ASSERT_EQ(lines.size(), 200u);
  double sum = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line l = parsed(lines[i]);
    EXPECT_EQ(l.text, plain[i]);
    EXPECT_EQ(l.words.size(), count_words(l.text));
    const double of_line = std::accumulate(l.words.begin(), l.words.end(), 0.0);
    EXPECT_NEAR(l.sentence, of_line / static_cast<double>(l.words.size()), 1e-4);
    sum += of_line;
  }
  EXPECT_NEAR(sum, right_, 5e-5 * words_) << "rounded to four decimals";
  const ShellOutcome again = calibrate("--measure");
  EXPECT_EQ(again.status, 0) << again.text;
  EXPECT_THAT(again.text, HasSubstr("calibration error   words 0."));
}

// Wherever translations come from: lists, samples, ensembles, beginnings, pieces, and the model in 8 bits.
TEST_F(CalibrateTest, HoldsForAllTranslations) {
  ASSERT_EQ(calibrate().status, 0);
  write("text", "see ab now\n\n");
  const std::string best = split(translate("--model model -i text --confidence"), '\n')[0];
  EXPECT_THAT(split(translate("--model model -i text --confidence"), '\n')[1], HasSubstr(" ||| Confidence= 1.0000 WordConfidence="));
  const std::vector<std::string> list = split(translate("--model model -i text --confidence --n-best 3 --word-scores words"), '\n');
  ASSERT_EQ(list.size(), 4u);
  EXPECT_THAT(list[0], HasSubstr(best.substr(best.find(" ||| Confidence="))));
  EXPECT_THAT(list[0], HasSubstr(" ||| WordScores= "));
  for (const std::string& line : split(translate("--model model -i source --confidence --sampling --seed 4"), '\n')) {
    const Line l = parsed(line);
    for (const double value : l.words) EXPECT_TRUE(value > 0 && value < 1) << line;
    EXPECT_EQ(l.words.size(), count_words(l.text)) << line;
  }
  EXPECT_EQ(split(translate("--model model --model model -i text --confidence"), '\n')[0], best) << "an ensemble of one model twice";
  write("tsv", "see ab now\tsiehe\n");
  const Line begun = parsed(split(translate("--model model -i tsv --tsv --confidence"), '\n')[0]);
  EXPECT_GT(begun.words[0], parsed(best).words[0]) << "a beginning is certain";
  EXPECT_EQ(parsed(split(translate("--model model -i text --confidence --target-pieces"), '\n')[0]).words, parsed(best).words);

  ASSERT_EQ(call("quantize -m model -o small --source source --target reference --threads 1 --force").status, 0);
  const std::vector<std::string> of_small = split(translate("--model small -i source --confidence"), '\n'),
                                 of_large = split(translate("--model model -i source --confidence"), '\n');
  int same = 0;
  for (size_t i = 0; i < of_small.size(); ++i) {
    const Line small = parsed(of_small[i]), large = parsed(of_large[i]);
    if (small.text != large.text) continue;
    ++same;
    EXPECT_NEAR(small.sentence, large.sentence, 0.1) << small.text;
  }
  EXPECT_GT(same, 5);
}

TEST_F(CalibrateTest, RefusesWhatItCannotKeep) {
  EXPECT_THAT(call("translate --model model -i source --confidence").text,
              HasSubstr("the model has no calibration, which confidence needs"));
  EXPECT_EQ(call("translate --model model -i source --confidence").status, 2);
  EXPECT_THAT(calibrate("--measure").text, HasSubstr("the model has no calibration"));
  ASSERT_EQ(calibrate("--dry-run").status, 0);
  EXPECT_FALSE(fs::exists(path("model/confidence.json")));
  EXPECT_THAT(calibrate("--dry-run --measure").text, HasSubstr("--dry-run excludes --measure"));
  EXPECT_THAT(call("translate --model model -i source --confidence --document").text, HasSubstr("--confidence is for lines"));
  write("few", "see ab now\nsee xy now\n");
  const ShellOutcome few = call("calibrate --model model --source few --target few");
  EXPECT_EQ(few.status, 3);
  EXPECT_THAT(few.text, HasSubstr("few: of the"));
  EXPECT_THAT(few.text, HasSubstr("a calibration needs 100 of each; use a longer text"));
  EXPECT_THAT(call("calibrate --model model --source source --target few").text, HasSubstr("few"));

  ASSERT_EQ(calibrate().status, 0);
  fs::copy(kOther, path("another"));
  fs::copy(path("model/confidence.json"), path("another/confidence.json"));
  EXPECT_THAT(call("translate --model another -i source --confidence").text,
              HasSubstr("another/confidence.json: belongs to other weights than those in this directory"));
  EXPECT_EQ(call("translate --model another -i few --quiet").status, 0) << "without --confidence it does not matter";
}

}  // namespace
}  // namespace starling
