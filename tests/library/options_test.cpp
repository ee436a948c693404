// Options of a call beyond those of a search: samples, alternatives, streams, limits, attention. The model is CTranslate2's transliteration
// from Arabic script, whose results its own tests give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "starling.h"
#include "starling/translator.h"
#include "tests/own_directory.h"

namespace {

using starling::Error;
using starling::ErrorKind;
using starling::TranslateOptions;
using starling::Translation;
using starling::Translator;
using testing::HasSubstr;

const std::string kTransliteration = std::string(STARLING_SOURCE_DIR) + "/tests/fixtures/ct2/v2-aren-transliteration-i8";
const std::string kAtzmon = "آ ت ز م و ن";

class LibraryOptions : public testing::Test {
 protected:
  LibraryOptions() { setenv("XDG_CACHE_HOME", directory_.file("cache").c_str(), 1); }
  ~LibraryOptions() override { unsetenv("XDG_CACHE_HOME"); }
  Translation translated(const TranslateOptions& options, const std::string& source = kAtzmon) const {
    return translator().translate(std::vector<std::string>{source}, options).front();
  }
  std::string refusal(const TranslateOptions& options) const {
    try {
      (void)translated(options);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::usage);
      return e.what();
    }
    return "nothing was thrown";
  }
  const Translator& translator() const {
    static const Translator one(kTransliteration, {.precision = "f32", .threads = 1});
    return one;
  }
  starling::OwnDirectory directory_;
};

TEST_F(LibraryOptions, TranslationsHaveTheTermsOfAGlossary) {
  EXPECT_EQ(translated({}).text(), "a t z m o n");
  EXPECT_EQ(translated({.glossary = "م\tb"}).text().find("b") != std::string::npos, true);
  EXPECT_EQ(translated({.glossary = "م\tm\nت\tt"}).text(), "a t z m o n") << "it has them by itself";
  EXPECT_THAT(refusal({.glossary = "m b"}), HasSubstr("glossary:1: a line has a term, a tab and its translation"));
  EXPECT_THAT(refusal({.repetition_penalty = 1.2, .glossary = "m\tb"}), HasSubstr("it cannot be combined with"));
  EXPECT_THROW(translator().translate_tokens({{"a"}}, {.glossary = "m\tb"}), Error);
  starling_options c;
  starling_fill_options(&c, sizeof c);
  EXPECT_EQ(c.glossary, nullptr);
}

TEST_F(LibraryOptions, StreamsTheGreedyTranslation) {
  std::vector<starling::Step> steps;
  TranslateOptions o{.beam = 1};
  o.on_token = [&](const starling::Step& step) {
    steps.push_back(step);
    return true;
  };
  const Translation whole = translated(o);
  EXPECT_EQ(whole.text(), "a t z m o n");
  ASSERT_EQ(steps.size(), 7u);
  double sum = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].token, i < 6 ? whole.hypotheses[0].tokens[i] : "</s>");
    EXPECT_EQ(steps[i].last, i == 6);
    sum += steps[i].log_probability;
  }
  EXPECT_EQ(steps[2].text, "a t z");
  EXPECT_NEAR(sum, whole.hypotheses[0].log_probability, 1e-5);
  EXPECT_EQ(whole.hypotheses[0].end, "</s>");
  steps.clear();
  o.on_token = [&](const starling::Step& step) {
    steps.push_back(step);
    return steps.size() < 3;
  };
  EXPECT_EQ(translated(o).text(), "a t z");
  EXPECT_EQ(steps.size(), 3u);
  o.beam = 2;
  EXPECT_THAT(refusal(o), HasSubstr("set beam to 1"));
}

TEST_F(LibraryOptions, DrawsTranslations) {
  TranslateOptions o{.n_best = 6};
  o.sampling = starling::Sampling{.seed = 5};
  const Translation drawn = translated(o);
  ASSERT_EQ(drawn.hypotheses.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    const auto& h = drawn.hypotheses[i];
    if (i > 0) EXPECT_GE(drawn.hypotheses[i - 1].score, h.score);
    const auto score = translator().score_tokens({{"آ", "ت", "ز", "م", "و", "ن"}}, {h.tokens})[0];
    if (!h.end.empty()) EXPECT_NEAR(score.log_probability, h.log_probability, 1e-4) << h.text;
  }
  EXPECT_EQ(translated(o).text(), drawn.text()) << "equal seeds";
  o.sampling->top_k = 1;
  for (const auto& h : translated(o).hypotheses) EXPECT_EQ(h.text, "a t z m o n");
  o.sampling = starling::Sampling{.top_p = 1e-6, .temperature = 50};
  for (const auto& h : translated(o).hypotheses) EXPECT_EQ(h.text, "a t z m o n");
  o.attention = true;
  EXPECT_THAT(refusal(o), HasSubstr("sampling works without"));
  EXPECT_THAT(refusal({.sampling = starling::Sampling{.top_p = 0}}), HasSubstr("sampling.top_p: 0"));
  EXPECT_THROW((void)translator().translate_async({"a"}, {.sampling = starling::Sampling{}}), Error);
}

TEST_F(LibraryOptions, FindsAlternatives) {
  TranslateOptions o{.beam = 2, .n_best = 10, .target_prefix = "a t"};
  o.alternatives = true;
  const Translation all = translated(o);
  ASSERT_EQ(all.hypotheses.size(), 10u);
  EXPECT_EQ(all.hypotheses[0].text, "z m o n");
  EXPECT_EQ(all.hypotheses[1].text, "s u m o n");
  std::vector<std::string> firsts;
  for (const auto& h : all.hypotheses) firsts.push_back(h.tokens.at(0));
  std::sort(firsts.begin(), firsts.end());
  EXPECT_EQ(std::unique(firsts.begin(), firsts.end()), firsts.end()) << "each begins in its own way";
  o.min_alternative_probability = 0.5;
  EXPECT_EQ(translated(o).hypotheses.size(), 1u);
}

TEST_F(LibraryOptions, LimitsAndAttention) {
  EXPECT_EQ(translated({.max_source_tokens = 3}).hypotheses[0].tokens.size(), 3u);
  EXPECT_TRUE(translated({.max_source_tokens = 3}).truncated);
  EXPECT_GE(translated({.min_length = 8}).hypotheses[0].tokens.size(), 8u);
  EXPECT_EQ(translated({.end_tokens = {"m"}}).text(), "a t z");
  EXPECT_THAT(refusal({.end_tokens = {"nosuch"}}), HasSubstr("no piece 'nosuch'"));
  EXPECT_THAT(refusal({.repetition_penalty = -1}), HasSubstr("repetition_penalty: -1"));
  TranslateOptions o{.target_prefix = "a t"};
  o.attention = true;
  const Translation t = translated(o);
  ASSERT_EQ(t.hypotheses[0].attention.size(), 2 + t.hypotheses[0].tokens.size() + 1) << "with the prefix and the end";
  for (const std::vector<float>& row : t.hypotheses[0].attention) {
    ASSERT_EQ(row.size(), 6u);
    double sum = 0;
    for (const float each : row) sum += each;
    EXPECT_NEAR(sum, 1, 1e-4);
  }
}

// The model reads no end of sentence by itself, like those that were converted from Hugging Face's, whose tokenizers give one.
TEST_F(LibraryOptions, ReadsAnEndOfSentenceThatIsGiven) {
  const std::vector<std::string> plain{"آ", "ت", "ز", "م", "و", "ن"};
  std::vector<std::string> ended = plain;
  ended.push_back("</s>");
  TranslateOptions o{.beam = 1};
  o.attention = true;
  const Translation without = translator().translate_tokens({plain}, o)[0], with = translator().translate_tokens({ended}, o)[0];
  EXPECT_EQ(without.hypotheses[0].attention[0].size(), 6u);
  EXPECT_EQ(with.hypotheses[0].attention[0].size(), 7u);
  EXPECT_NE(with.hypotheses[0].log_probability, without.hypotheses[0].log_probability);
  EXPECT_NEAR(translator().score_tokens({ended}, {with.hypotheses[0].tokens})[0].log_probability, with.hypotheses[0].log_probability, 1e-4);
  o.max_source_tokens = 4;
  const Translation cut = translator().translate_tokens({ended}, o)[0];
  EXPECT_TRUE(cut.truncated);
  EXPECT_EQ(cut.hypotheses[0].attention[0].size(), 4u) << "three tokens and the end";
  EXPECT_FALSE(translator().translate_tokens({{"آ", "ت", "ز", "</s>"}}, o)[0].truncated);
}

int kept_tokens(const char* piece, const char* text, int last, void* data) {
  auto& all = *static_cast<std::vector<std::string>*>(data);
  all.push_back(std::string(piece) + "|" + text + "|" + std::to_string(last));
  return all.size() < 4;
}

TEST_F(LibraryOptions, OfC) {
  starling_translator* t = starling_open(kTransliteration.c_str(), "cpu", 1);
  ASSERT_NE(t, nullptr) << starling_error();
  starling_options o;
  starling_default_options(&o);
  std::vector<std::string> all;
  starling_result* r = starling_translate_stream(t, kAtzmon.c_str(), &o, kept_tokens, &all);
  ASSERT_NE(r, nullptr) << starling_error();
  EXPECT_EQ(all, (std::vector<std::string>{"a|a|0", "t|a t|0", "z|a t z|0", "m|a t z m|0"}));
  EXPECT_STREQ(starling_text(r, 0, 0), "a t z m");
  starling_free_result(r);
  EXPECT_EQ(starling_translate_stream(t, kAtzmon.c_str(), &o, nullptr, nullptr), nullptr);
  const auto text = [&] {
    const char* const sentence = kAtzmon.c_str();
    starling_result* const result = starling_translate(t, &sentence, 1, &o);
    const std::string found = result ? starling_text(result, 0, 0) : starling_error();
    starling_free_result(result);
    return found;
  };
  o.end_tokens = "m o";
  EXPECT_EQ(text(), "a t z");
  o.end_tokens = nullptr, o.suppress = "o ||| t z m";
  EXPECT_EQ(text(), "a t z u m u n");
  o.suppress = nullptr, o.max_length = 2;
  EXPECT_EQ(text(), "a t");
  o.max_length = 0, o.sample = 1, o.top_k = 1;
  EXPECT_EQ(text(), "a t z m o n");
  o.top_p = 2;
  EXPECT_THAT(text(), HasSubstr("top_p: 2"));
  o.top_p = 1, o.length_penalty = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(text(), HasSubstr("length_penalty: nan"));
  // A program that was compiled with the first version of the structure.
  starling_fill_options(&o, offsetof(starling_options, suppress));
  o.suppress = "a";
  EXPECT_EQ(text(), "a t z m o n");
  starling_close(t);
}

// A tag that is typed in front of a source is a token of it, without attention; what the others have stands under them.
TEST_F(LibraryOptions, ATypedTagHasAColumnOfAttention) {
  const std::string folder = directory_.file("tagged");
  std::filesystem::copy(std::string(STARLING_SOURCE_DIR) + "/tests/fixtures/hf/marian", folder);
  std::ifstream in(folder + "/vocab.json");
  std::string numbers{std::istreambuf_iterator<char>(in), {}};
  const std::string piece = numbers.find("\"\\u00dc\"") != std::string::npos ? "\"\\u00dc\"" : "\"Ü\"";
  ASSERT_NE(numbers.find(piece), std::string::npos);
  numbers.replace(numbers.find(piece), piece.size(), "\">>fra<<\"");
  std::ofstream(folder + "/vocab.json") << numbers;
  const Translator tagged(folder, {.precision = "f32", .threads = 1});
  TranslateOptions o{.beam = 1};
  o.attention = o.alignment = true;
  const auto of = [&](const std::vector<std::string>& tokens) { return tagged.translate_tokens({tokens}, o).front().hypotheses.front(); };
  std::vector<std::string> tokens = tagged.source_tokens("A man is on a street.");
  o.source_prefix = ">>fra<<";
  const starling::Hypothesis plain = of(tokens);
  o.source_prefix.reset();
  tokens.insert(tokens.begin(), ">>fra<<");
  const starling::Hypothesis typed = of(tokens);
  ASSERT_EQ(typed.tokens, plain.tokens);
  ASSERT_EQ(typed.attention.size(), plain.attention.size());
  for (size_t t = 0; t < plain.attention.size(); ++t) {
    ASSERT_EQ(typed.attention[t].size(), tokens.size());
    EXPECT_EQ(typed.attention[t][0], 0);
    EXPECT_TRUE(std::equal(plain.attention[t].begin(), plain.attention[t].end(), typed.attention[t].begin() + 1));
  }
  for (const auto& [source, target] : typed.alignment) EXPECT_GT(source, 0);
}

TEST_F(LibraryOptions, AlternativesFollowAForcedPrefix) {
  TranslateOptions o{.n_best = 2, .target_prefix = "a"};
  o.alternatives = true;
  o.prefix_bias = 0.5;
  EXPECT_THAT(refusal(o), HasSubstr("a prefix that is forced"));
}

}  // namespace
