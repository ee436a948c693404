// Words and their features by hand, and the file that keeps a regression.
#include "decode/confidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "tests/own_directory.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> texts(std::string_view text, const std::vector<Range>& pieces) {
  std::vector<std::string> all;
  for (const TextWord& w : words_of_pieces(text, pieces)) {
    all.emplace_back(text.substr(static_cast<size_t>(w.bytes.begin), static_cast<size_t>(w.bytes.count())));
    for (const size_t p : w.pieces) all.back() += "/" + std::to_string(p);
  }
  return all;
}

TEST(ConfidenceWords, StandBetweenSpaces) {
  EXPECT_THAT(texts("Ein Haus.", {{0, 3}, {3, 6}, {6, 8}, {8, 9}}), ElementsAre("Ein/0", "Haus./1/2/3"));
  EXPECT_THAT(texts("a  b", {{0, 1}, {1, 2}, {2, 2}, {2, 4}}), ElementsAre("a/0", "b/3")) << "a piece of space alone, and one without text";
  EXPECT_TRUE(texts("", {}).empty());
}

// Japanese has no spaces; 2 and 3 pieces of a sentence of them are that many words. Beside it, words of letters stay whole.
TEST(ConfidenceWords, ArePiecesInScriptsWithoutSpaces) {
  EXPECT_THAT(texts("犬が走る。", {{0, 3}, {3, 6}, {6, 12}, {12, 15}}), ElementsAre("犬/0", "が/1", "走る/2", "。/3"));
  EXPECT_THAT(texts("ab 犬a c", {{0, 1}, {1, 2}, {2, 6}, {6, 7}, {7, 9}}), ElementsAre("ab/0/1", "犬/2", "a/3", "c/4"));
  EXPECT_THAT(texts("한국 어", {{0, 3}, {3, 6}, {6, 10}}), ElementsAre("한국/0/1", "어/2")) << "Korean has spaces";
}

TEST(ConfidenceFeatures, OfTwoWordsByHand) {
  Hypothesis h;
  h.tokens = {5, 6, 7};
  h.log_probabilities = {-0.5F, -2.0F, -0.25F, -1.25F};  // the last one is the end's
  const std::vector<TextWord> words{{{0, 4}, {0, 1}}, {{5, 9}, {2}}};
  const auto sure = [](double l) { return -std::log(1 - std::exp(l) + 0.005); };
  const std::vector<WordFeatures> f = word_features(h, words);
  ASSERT_EQ(f.size(), 2u);
  const WordFeatures first{sure(-2), -2, std::log(2.0), -1, sure(0), sure(-0.25)}, second{sure(-0.25), -0.25, 0, -1, sure(-2), sure(-1.25)};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(f[0][i], first[i], 1e-9) << kWordFeatures[i];
    EXPECT_NEAR(f[1][i], second[i], 1e-9) << kWordFeatures[i];
  }
  h.log_probabilities.pop_back();  // cut at the limit
  EXPECT_NEAR(word_features(h, words)[1][5], sure(-3), 1e-9);
}

class ConfidenceFile : public testing::Test {
 protected:
  ConfidenceFile() {
    model_.intercept = -0.25;
    for (size_t i = 0; i < 6; ++i) model_.terms[i] = {0.1 * static_cast<double>(i), -static_cast<double>(i), 1.5};
    model_.fitted_on = {{"source", "dev \xff"}};
  }
  void write(const Part& part) {
    files_->make_directories(path());
    write_part(*files_, path(), part);
  }
  std::string path() const { return directory_.path() + "/model"; }
  std::string error() const {
    try {
      read_confidence(*files_, path() + "/confidence.json", "digest");
    } catch (const DataError& e) {
      return e.what();
    }
    return "";
  }
  void overwrite(const std::string& from, const std::string& to) {
    write(confidence_part(model_, "digest"));
    std::string text = files_->read_file(path() + "/confidence.json");
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(path() + "/confidence.json") << text.replace(at, from.size(), to);
  }

  OwnDirectory directory_;
  std::unique_ptr<FileSystem> files_ = real_file_system();
  ConfidenceModel model_;
};

TEST_F(ConfidenceFile, ComesBackAsItWas) {
  write(confidence_part(model_, "digest"));
  const ConfidenceModel read = read_confidence(*files_, path() + "/confidence.json", "digest");
  EXPECT_EQ(read.intercept, model_.intercept);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(read.terms[i].weight, model_.terms[i].weight);
    EXPECT_EQ(read.terms[i].from, model_.terms[i].from);
    EXPECT_EQ(read.terms[i].to, model_.terms[i].to);
  }
}

TEST_F(ConfidenceFile, IsRefusedWhenItIsDamagedOrAnother) {
  overwrite("digest", "other");
  EXPECT_THAT(error(), HasSubstr("belongs to other weights than those in this directory; make it again with 'starling calibrate'"));
  overwrite("confidence-1", "confidence-2");
  EXPECT_THAT(error(), HasSubstr("written by another version"));
  overwrite("\"weight\"", "\"wait\"");
  EXPECT_THAT(error(), HasSubstr("not a calibration"));
  overwrite("-0.25", "1e999");
  EXPECT_NE(error(), "");
  overwrite("\"to\": 1.5", "\"to\": -99");
  EXPECT_THAT(error(), HasSubstr("begins above its end"));
  overwrite("{", "[");
  EXPECT_NE(error(), "");
}

TEST_F(ConfidenceFile, IsAskedForWhereItIsMissing) {
  const FoundConfidence none = find_confidence(*files_, STARLING_SOURCE_DIR "/tests/fixtures/models/pre/model");
  EXPECT_FALSE(none.model);
  try {
    none.require();
    ADD_FAILURE();
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(),
                HasSubstr("has no calibration, which confidence needs; make one from a development text with 'starling calibrate"));
  }
}

TEST(ConfidenceOfNothing, IsSureOnlyOfABlankSource) {
  const Vocabulary vocabulary = Vocabulary::load(STARLING_SOURCE_DIR "/tests/fixtures/models/pre/model/vocab.spm");
  Hypothesis blank, mute;
  mute.length = 1, mute.log_probabilities = {-3};
  EXPECT_EQ(ConfidenceModel{}.of(blank, vocabulary).sentence, 1);
  EXPECT_EQ(ConfidenceModel{}.of(mute, vocabulary).sentence, 0);
}

}  // namespace
}  // namespace starling
