// Confidence as programs get it, against what the program prints. The model is calibrated by the program first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "output.h"
#include "starling.h"
#include "starling/translator.h"
#include "tests/own_directory.h"

namespace {

using library_test::lines_of;
using library_test::output_of;
using starling::Hypothesis;
using starling::OwnDirectory;
using starling::TranslateOptions;
using starling::Translation;
using starling::Translator;

class LibraryConfidence : public testing::Test {
 protected:
  // The reference of every other line is the model's own translation, of the others a word that it never writes.
  LibraryConfidence() {
    std::filesystem::copy(STARLING_SOURCE_DIR "/tests/fixtures/models/pre/model", model_);
    const char* const who[] = {"A dog", "A boy", "The cat", "A man", "A woman", "A child", "The girl", "A bird"};
    for (const char* w : who)
      for (int i = 0; i < 32; ++i)
        sources_.push_back(std::string(w) + " runs " + std::string(static_cast<size_t>(i % 8) + 1, 'a' + i % 26) + ".");
    std::ofstream(directory_.file("source")) << joined(sources_);
    std::vector<std::string> references = program("translate --quiet --input " + directory_.file("source"));
    for (size_t i = 0; i < references.size(); ++i)
      if (i % 4 < 2) references[i] = "wrong";
    std::ofstream(directory_.file("target")) << joined(references);
    program("calibrate --source " + directory_.file("source") + " --target " + directory_.file("target"));
  }
  static std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }
  std::vector<std::string> program(const std::string& arguments) const {
    return lines_of(output_of(std::string(STARLING_BINARY) + " " + arguments + " --precision f32 --threads 1 -m " + model_));
  }
  // As `translate --confidence` prints it.
  static std::string printed(const Hypothesis& h) {
    std::ostringstream out;
    out << std::fixed;
    out.precision(4);
    out << h.text << " ||| Confidence= " << h.confidence.value_or(-1) << " WordConfidence=";
    for (const starling::Word& w : h.words) {
      EXPECT_LT(w.begin, w.end);
      EXPECT_EQ(h.text.substr(w.begin, w.end - w.begin).find(' '), std::string::npos);
      out << ' ' << w.confidence;
    }
    return out.str();
  }

  OwnDirectory directory_;
  const std::string model_ = directory_.file("model");
  std::vector<std::string> sources_;
};

TEST_F(LibraryConfidence, IsWhatTheProgramPrints) {
  const Translator translator(model_, {.precision = "f32", .threads = 1});
  std::vector<std::string> lines;
  for (const Translation& t : translator.translate(sources_, {.confidence = true})) lines.push_back(printed(t.hypotheses.front()));
  EXPECT_EQ(lines, program("translate --quiet --confidence --input " + directory_.file("source")));

  const std::vector<std::string> first{sources_.front()};
  TranslateOptions o{.n_best = 2, .confidence = true};
  EXPECT_FALSE(translator.translate(first).front().hypotheses.front().confidence);
  o.alternatives = true;
  const Translation alternatives = translator.translate(first, o).front();
  for (const Hypothesis& h : alternatives.hypotheses) EXPECT_FALSE(h.words.empty() && !h.text.empty());
  o.alternatives = false, o.sampling.emplace();
  const Translation samples = translator.translate(first, o).front();
  for (const Hypothesis& h : samples.hypotheses) EXPECT_TRUE(h.confidence.value() >= 0 && h.confidence.value() <= 1);
  EXPECT_EQ(translator.translate_document("A dog.", {}, {.confidence = true}), translator.translate_document("A dog."));

  const Translator plain(STARLING_SOURCE_DIR "/tests/fixtures/models/pre/model", {.threads = 1});
  try {
    plain.translate(first, {.confidence = true});
    ADD_FAILURE() << "a model without calibration";
  } catch (const starling::Error& e) {
    EXPECT_EQ(e.kind(), starling::ErrorKind::usage);
    EXPECT_THAT(e.what(), testing::HasSubstr("has no calibration, which confidence needs"));
  }
}

TEST_F(LibraryConfidence, InC) {
  starling_translator* const t = starling_open(model_.c_str(), "cpu", 1);
  ASSERT_NE(t, nullptr) << starling_error();
  const char* sentences[] = {sources_.front().c_str()};
  starling_options o;
  starling_default_options(&o);
  starling_result* r = starling_translate(t, sentences, 1, &o);
  ASSERT_NE(r, nullptr) << starling_error();
  EXPECT_EQ(starling_confidence(r, 0, 0), -1);
  EXPECT_EQ(starling_words(r, 0, 0), 0u);
  starling_free_result(r);
  o.confidence = 1;
  r = starling_translate(t, sentences, 1, &o);
  ASSERT_NE(r, nullptr) << starling_error();
  const std::string text = starling_text(r, 0, 0);
  double sum = 0;
  const size_t words = starling_words(r, 0, 0);
  ASSERT_GT(words, 0u);
  size_t last = 0;
  for (size_t w = 0; w < words; ++w) {
    size_t begin = 0, end = 0;
    sum += starling_word(r, 0, 0, w, &begin, &end);
    EXPECT_LE(last, begin);
    EXPECT_LE(end, text.size());
    last = end;
  }
  EXPECT_NEAR(starling_confidence(r, 0, 0), sum / static_cast<double>(words), 1e-12);
  EXPECT_EQ(starling_word(r, 0, 0, words, nullptr, nullptr), 0);
  EXPECT_EQ(starling_confidence(nullptr, 0, 0), -1);
  starling_free_result(r);
  starling_close(t);
}

}  // namespace
