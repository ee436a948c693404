// Metrics against sacreBLEU's own numbers where the data is there, and against values worked out by hand.
#include "metrics/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/error.h"
#include "metrics/mecab.h"
#include "tests/metrics/scores.h"
#include "text/unicode.h"

namespace starling {
namespace {

// ---- sacreBLEU's numbers ----

std::filesystem::path scores_folder() {
  const char* data = std::getenv("STARLING_DATA");
  return std::filesystem::path(data != nullptr ? data : STARLING_SOURCE_DIR "/../shared/data") / "scores";
}

Corpus read_lines(const std::filesystem::path& path) {
  std::ifstream in(path);
  Corpus lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

MetricScore score_as(const std::string& key, const Corpus& hypotheses, const Corpus& references) {
  if (key == "chrf2" || key == "chrf") return corpus_chrf(hypotheses, references);
  if (key == "chrfpp" || key == "chrf++") return score_of("chrf++", hypotheses, references);
  if (key == "ter") return score_of("ter", hypotheses, references);
  if (key == "ter_normalized_asian") return score_of("ter", hypotheses, references, {.ter = {.normalized = true, .asian_support = true}});
  if (key == "bleu_ja_mecab") return corpus_bleu(hypotheses, references, {.tokenizer = bleu_tokenizer_from("ja-mecab")});
  if (key == "bleu_lc") return corpus_bleu(hypotheses, references, {.lowercase = true});
  return corpus_bleu(hypotheses, references, {.tokenizer = bleu_tokenizer_from(key.substr(std::string("bleu_").size()))});
}

std::string without_version(const std::string& signature) { return signature.substr(0, signature.find("|version:")); }

// Compares every score of one of the files; returns how many there were.
int compare_all(const std::filesystem::path& file) {
  const auto expected = nlohmann::json::parse(std::ifstream(file));
  int entries = 0;
  for (const auto& [set, metrics] : expected.items()) {
    const Corpus hypotheses = read_lines(file.parent_path() / (set + ".hyp")), references = read_lines(file.parent_path() / (set + ".ref"));
    for (const auto& [key, entry] : metrics.items()) {
      if (key == "bleu_ja_mecab" && !mecab_is_installed()) {
        std::cout << "MeCab is not installed (Debian packages libmecab2 and mecab-ipadic-utf8): " << key << " is not compared\n";
        continue;
      }
      const MetricScore score = score_as(key, hypotheses, references);
      // The files round to six decimals.
      EXPECT_NEAR(score.score, entry["score"].get<double>(), 0.51e-6) << set << " " << key;
      EXPECT_EQ(text_of(score), entry["text"].get<std::string>()) << set << " " << key;
      EXPECT_EQ(without_version(score.signature), without_version(entry["signature"].get<std::string>())) << set << " " << key;
      EXPECT_TRUE(score.signature.ends_with("|version:starling-0.1.0")) << score.signature;
      ++entries;
    }
  }
  return entries;
}

TEST(SacreBleu, EveryExpectedScore) {
  const auto file = scores_folder() / "expected.json";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file << "; set STARLING_DATA";
  EXPECT_GE(compare_all(file), 32);
}

// Japanese under every tokenizer, international tokenization of the other files, TER with Asian support.
TEST(SacreBleu, EveryExpectedScoreOfOtherScripts) {
  const auto file = scores_folder() / "expected-more.json";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file << "; set STARLING_DATA";
  EXPECT_GE(compare_all(file), 12);
}

// The three sentences with two references of sacreBLEU's manual, and the scores printed there.
TEST(SacreBleu, ExampleWithTwoReferences) {
  const Corpus hypotheses{"The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."};
  const std::vector<Corpus> references{{"The dog bit the man.", "It was not unexpected.", "The man bit him first."},
                                       {"The dog had bit the man.", "No one was surprised.", "The man had bitten the dog."}};
  EXPECT_EQ(text_of(evaluate("bleu", hypotheses, references)),
            "BLEU = 48.53 82.4/50.0/45.5/37.5 (BP = 0.943 ratio = 0.944 hyp_len = 17 ref_len = 18)");
  EXPECT_EQ(evaluate("bleu", hypotheses, references).length_ratio, 17.0 / 18);
  EXPECT_EQ(text_of(evaluate("chrf", hypotheses, references)), "chrF2 = 59.73");
  EXPECT_EQ(evaluate("chrf", hypotheses, references).length_ratio, 0);
  EXPECT_TRUE(evaluate("bleu", hypotheses, references).signature.starts_with("nrefs:2|case:mixed|"));
}

// ---- Tokenizers ----

Words tokens(std::string_view sentence, const char* tokenizer) {
  const std::string text = bleu_tokenizer_from(tokenizer)(sentence);
  const auto views = split_on_space(std::string_view(text));
  return {views.begin(), views.end()};
}

TEST(Tokenizer, Mteval13a) {
  const auto t = [](std::string_view s) { return tokens(s, "13a"); };
  EXPECT_EQ(t("Hello, world."), (Words{"Hello", ",", "world", "."}));
  EXPECT_EQ(t("1,234.56 and .5"), (Words{"1,234.56", "and", ".", "5"}));
  EXPECT_EQ(t("don't (stop)-now"), (Words{"don't", "(", "stop", ")", "-now"}));
  EXPECT_EQ(t("1990-95 well-known"), (Words{"1990", "-", "95", "well-known"}));
  EXPECT_EQ(t("&quot;A&amp;lt;B&quot;"), (Words{"\"", "A", "<", "B", "\""}));
  EXPECT_EQ(t("a<skipped>b"), (Words{"ab"}));
  EXPECT_EQ(t("é…»,“x"), (Words{"é…»", ",", "“x"}));
  EXPECT_EQ(t("end."), (Words{"end", "."}));
  EXPECT_TRUE(t(" \u3000").empty());
}

TEST(Tokenizer, NoneCharacterAndChinese) {
  EXPECT_EQ(tokens("a,b  c.", "none"), (Words{"a,b", "c."}));
  EXPECT_EQ(tokens("aé 日😀", "char"), (Words{"a", "é", "日", "😀"}));
  EXPECT_EQ(tokens("日本go、2.5", "zh"), (Words{"日", "本", "go", "、", "2.5"}));
  EXPECT_EQ(tokens(" .5 &amp;", "zh"), (Words{".5", "&", "amp", ";"}));
  EXPECT_EQ(tokens("a—b𠀀𠀁", "zh"), (Words{"a", "—", "b𠀀𠀁"}));  // sacreBLEU's range, dashes but no extension B
}

TEST(Tokenizer, NamesGoBothWays) {
  for (const char* name : {"13a", "intl", "none", "char", "zh"}) EXPECT_EQ(bleu_tokenizer_from(name).name(), name);
  EXPECT_THROW(bleu_tokenizer_from("ja"), ConfigError);
}

// ---- BLEU by hand ----

double bleu(const std::string& hypothesis, const std::string& reference, const EvaluateOptions& options = kPlain) {
  return corpus_bleu(Corpus{hypothesis}, Corpus{reference}, options).score;
}

TEST(Bleu, GeometricMeanOfPrecisions) { EXPECT_NEAR(bleu("a b c d e", "a b c d f"), 100 * std::pow(0.2, 0.25), 1e-9); }

TEST(Bleu, BrevityPenalty) {
  EXPECT_NEAR(bleu("a b c d", "a b c d e"), 100 * std::exp(-0.25), 1e-9);
  EXPECT_NEAR(bleu("a b c d e", "a b c d"), 100 * std::pow(4 / 5. * 3 / 4. * 2 / 3. * 1 / 2., 0.25), 1e-9);
}

TEST(Bleu, MatchesAreClippedByTheReference) {
  EXPECT_EQ(corpus_bleu(Corpus{"the the the the the the the"}, Corpus{"the cat is on the mat"}, kPlain).verbose,
            "28.6/8.3/5.0/3.1 (BP = 1.000 ratio = 1.167 hyp_len = 7 ref_len = 6)");
}

TEST(Bleu, SmoothingOfOrdersWithoutMatches) {
  const std::string hypothesis = "a b c d e f g h", reference = "a b x d e x g h";
  EXPECT_NEAR(bleu(hypothesis, reference), 100 * std::pow(6 / 8. * 3 / 7. / 12 / 20, 0.25), 1e-9);
}

TEST(Bleu, NoMatchAtAllIsZeroEvenWithSmoothing) {
  EXPECT_EQ(text_of(corpus_bleu(Corpus{"a b c d e"}, Corpus{"v w x y z"}, kPlain)),
            "BLEU = 0.00 0.0/0.0/0.0/0.0 (BP = 1.000 ratio = 1.000 hyp_len = 5 ref_len = 5)");
}

TEST(Bleu, WithoutFourTokensIsZero) { EXPECT_EQ(bleu("a b c", "a b c"), 0); }

TEST(Bleu, EmptySides) {
  const auto verbose = [](const char* hypothesis, const char* reference) {
    const MetricScore score = corpus_bleu(Corpus{hypothesis}, Corpus{reference});
    EXPECT_EQ(score.score, 0);
    return score.verbose;
  };
  EXPECT_EQ(verbose("", "a b"), "0.0/0.0/0.0/0.0 (BP = 0.000 ratio = 0.000 hyp_len = 0 ref_len = 2)");
  EXPECT_EQ(verbose("a b", ""), "0.0/0.0/0.0/0.0 (BP = 1.000 ratio = 0.000 hyp_len = 2 ref_len = 0)");
  EXPECT_EQ(verbose("", ""), "0.0/0.0/0.0/0.0 (BP = 1.000 ratio = 0.000 hyp_len = 0 ref_len = 0)");
}

TEST(Bleu, NearestReferenceLengthAndTheShorterOfTwo) {
  const auto length = [](const std::vector<Corpus>& references) {
    const std::string verbose = evaluate("bleu", Corpus{"a b c d"}, references, kPlain).verbose;
    return verbose.substr(verbose.find("ref_len"));
  };
  EXPECT_EQ(length({{"a b c d e f"}, {"a b c d e"}, {"a"}}), "ref_len = 5)");
  EXPECT_EQ(length({{"a b c d e"}, {"a b c"}}), "ref_len = 3)");
}

TEST(Bleu, LowercaseIgnoresCase) {
  EXPECT_NEAR(bleu("ÄRGER UND ΟΔΟΣ HIER", "ärger und οδος hier", {.lowercase = true}), 100, 1e-9);
  EXPECT_EQ(bleu("ÄRGER UND ΟΔΟΣ HIER", "ärger und οδος hier"), 0);
}

// ---- chrF by hand ----

double chrf(const std::string& hypothesis, const std::string& reference, const char* metric = "chrf") {
  return score_of(metric, {hypothesis}, {reference}).score;
}

TEST(Chrf, AveragesPrecisionAndRecallOverCommonOrders) {
  // Unigrams 2 of 2 and 2 of 3, bigrams 1 of 1 and 1 of 2; no trigram in the hypothesis.
  EXPECT_NEAR(chrf("ab", "abc"), 100 * 5 * (7 / 12.) / (4 + 7 / 12.), 1e-9);
  // chrF++ adds the word unigram, which does not match.
  EXPECT_NEAR(chrf("ab", "abc", "chrf++"), 100 * 14 / 33., 1e-9);
}

TEST(Chrf, SpacesDoNotCount) { EXPECT_NEAR(chrf("ab cd", "a\u00A0bcd"), 100, 1e-9); }

TEST(Chrf, LowercaseIgnoresCase) {
  EXPECT_EQ(chrf("ÄB", "äb"), 0);
  const MetricScore score = corpus_chrf(Corpus{"ÄB"}, Corpus{"äb"}, {.lowercase = true});
  EXPECT_NEAR(score.score, 100, 1e-9);
  EXPECT_EQ(without_version(score.signature), "nrefs:1|case:lc|eff:yes|nc:6|nw:0|space:no");
}

TEST(Chrf, OnePunctuationMarkIsCutOffAWord) {
  EXPECT_NEAR(chrf("well hi!", "well hi !", "chrf++"), 100, 1e-9);
  EXPECT_NEAR(chrf("(hi there", "( hi there", "chrf++"), 100, 1e-9);
  EXPECT_LT(chrf("(hi) there", "( hi ) there", "chrf++"), 100);  // the closing one only
  EXPECT_EQ(score_of("chrf++", {"a"}, {"a"}).name, "chrF2++");
}

TEST(Chrf, CountsCodePointsNotBytes) { EXPECT_NEAR(chrf("éa", "èa"), 100 * 0.25, 1e-9); }  // 1 of 2 unigrams, 0 of 1 bigrams

TEST(Chrf, EmptySides) {
  EXPECT_EQ(chrf("", "a"), 0);
  EXPECT_EQ(chrf("a", ""), 0);
  EXPECT_EQ(chrf("", ""), 0);
  // An empty reference takes its hypothesis out of the count.
  EXPECT_NEAR(corpus_chrf(Corpus{"abc", "zzz"}, Corpus{"abc", ""}).score, 100, 1e-9);
}

TEST(Chrf, TheBestReferenceOfEachSentenceCounts) {
  EXPECT_NEAR(evaluate("chrf", Corpus{"abc", "xyz"}, std::vector<Corpus>{{"abc", "q"}, {"q", "xyz"}}).score, 100, 1e-9);
}

// ---- TER by hand ----

double ter(const std::string& hypothesis, const std::string& reference) { return score_of("ter", {hypothesis}, {reference}).score; }

TEST(Ter, OneEditEach) {
  EXPECT_NEAR(ter("a x c d", "a b c d"), 25, 1e-9);    // substitution
  EXPECT_NEAR(ter("a c d", "a b c d"), 25, 1e-9);      // insertion
  EXPECT_NEAR(ter("a b c d e", "a b c d"), 25, 1e-9);  // deletion
  EXPECT_NEAR(ter("b c d a", "a b c d"), 25, 1e-9);    // shift of one word
  EXPECT_NEAR(ter("c d a b", "a b c d"), 25, 1e-9);    // shift of two
}

TEST(Ter, EmptySides) {
  EXPECT_NEAR(ter("", "a b"), 100, 1e-9);
  EXPECT_NEAR(ter("a b c", ""), 100, 1e-9);
  EXPECT_EQ(ter("", ""), 0);
  EXPECT_NEAR(score_of("ter", {"a b", "x"}, {"a b", ""}).score, 50, 1e-9);
}

TEST(Ter, MayExceedAHundred) { EXPECT_NEAR(ter("x y z", "a"), 300, 1e-9); }

TEST(Ter, IgnoresCase) {
  EXPECT_EQ(ter("DAS Öl", "das öl"), 0);
  EXPECT_TRUE(score_of("ter", {"a"}, {"a"}).signature.starts_with("nrefs:1|case:lc|tok:tercom|"));
}

TEST(Ter, FewestEditsOverMeanLength) {
  EXPECT_NEAR(evaluate("ter", Corpus{"a b"}, std::vector<Corpus>{{"a b c d"}, {"a c"}}).score, 100 * 1 / 3., 1e-9);
}

// ---- GLEU by hand ----

TEST(Gleu, SmallerOfPrecisionAndRecall) {
  EXPECT_NEAR(gleu("the cat sat", "the cat sat on"), 6 / 10., 1e-12);
  EXPECT_NEAR(gleu("the cat sat on", "the cat sat"), 6 / 10., 1e-12);
  EXPECT_NEAR(gleu("a a a", "a"), 1 / 6., 1e-12);
  EXPECT_EQ(gleu("a b", "c d"), 0);
  EXPECT_EQ(gleu("", "a"), 0);
  EXPECT_EQ(gleu("a", "a"), 1);
  EXPECT_EQ(gleu("", ""), 0);
  const std::vector<std::int32_t> hypothesis{5, 6, 7}, reference{5, 6, 7, 8};
  EXPECT_NEAR(sentence_gleu(hypothesis, reference), 6 / 10., 1e-12);
}

TEST(Gleu, OfACorpusIsTheMeanOfTheBestReferences) {
  // Sentence 1: 6 of 10 n-grams; sentence 2: 1 of 3 with the first reference, 3 of 3 with the second.
  const Corpus hypotheses{"the cat sat", "a b"}, first{"the cat sat on", "a c"}, second{"x", "a b"};
  EXPECT_NEAR(score_of("gleu", hypotheses, first).score, 100 * (6 / 10. + 1 / 3.) / 2, 1e-9);
  const MetricScore both = evaluate("gleu", hypotheses, std::vector<Corpus>{first, second});
  EXPECT_NEAR(both.score, 100 * (6 / 10. + 1) / 2, 1e-9);
  EXPECT_EQ(both.signed_text(2), "GLEU|nrefs:2|case:mixed|tok:13a|version:starling-0.1.0 = 80.00");
  EXPECT_EQ(score_of("gleu", {"A b."}, {"a b ."}).score, 100 * 3 / 6.);  // b, ., and "b ."
  EXPECT_EQ(score_of("gleu", {"A b."}, {"a b ."}, {.lowercase = true}).score, 100);
}

// By the formula of Och and Ney (2003): 1 - (|A & S| + |A & P|) / (|A| + |S|).
TEST(Aer, CountsSureAndPossibleLinks) {
  const Corpus links{"0-0 1-2 2-1 2-1", "0-0", ""}, gold{"0-0 1?2 3-3", "0p0 1-1", ""};
  const MetricScore score = score_of("aer", links, gold);  // A: 3 + 1, S: 2 + 1, A & S: 1, A & P: 2 + 1
  EXPECT_NEAR(score.score, 100 * (1 - (1 + 3) / 7.0), 1e-12);
  EXPECT_EQ(score.signed_text(1), "AER|sure:3|possible:2|version:starling-0.1.0 = 42.9 (precision = 75.0 recall = 33.3 links = 4)");
  EXPECT_EQ(score_of("aer", {"0-0 1-1"}, {"0-0 1-1"}).score, 0);
  EXPECT_EQ(score_of("aer", {"0-1"}, {"0-0"}).score, 100);
  const auto refusal = [](const Corpus& hypotheses, const Corpus& references) {
    try {
      score_of("aer", hypotheses, references);
    } catch (const DataError& error) {
      return std::string(error.what()).substr(0, 37);
    }
    return std::string();
  };
  EXPECT_EQ(refusal({"0-0", "0.0"}, {"", ""}), "hypothesis 2: '0.0' is not a link; li");
  EXPECT_EQ(refusal({"0-0"}, {"a cat"}), "reference 1: 'a' is not a link; links");
  EXPECT_THROW(evaluate("aer", Corpus{""}, std::vector<Corpus>{{""}, {""}}), DataError);
}

// ---- Input errors and reporting ----

std::string data_error(const Corpus& hypotheses, const std::vector<Corpus>& references) {
  try {
    evaluate("bleu", hypotheses, references);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no DataError";
}

TEST(Input, ErrorsNameCountsAndPlace) {
  EXPECT_EQ(data_error({"a", "b"}, {{"a", "b"}, {"a", "b", "c"}}),
            "2 hypotheses but 3 sentences in reference list 2; give one reference for each hypothesis");
  EXPECT_EQ(data_error({"a", "b\xC3"}, {{"a", "b"}}), "hypothesis 2: invalid UTF-8 at byte 1; convert the text to UTF-8");
  EXPECT_EQ(data_error({"a"}, {{"\xFF"}}), "reference list 1, sentence 1: invalid UTF-8 at byte 0; convert the text to UTF-8");
  EXPECT_THROW(evaluate("bleu", Corpus{}, std::vector<Corpus>{{}}), DataError);
  EXPECT_THROW(evaluate("bleu", Corpus{"a"}, std::vector<Corpus>{}), DataError);
  EXPECT_THROW(evaluate("meteor", Corpus{"a"}, std::vector<Corpus>{{"a"}}), ConfigError);
}

TEST(Report, TextAndJson) {
  const MetricScore score = corpus_bleu(Corpus{"a b c d e"}, Corpus{"a b c d f"}, kPlain);
  EXPECT_EQ(text_of(score), "BLEU = 66.87 80.0/75.0/66.7/50.0 (BP = 1.000 ratio = 1.000 hyp_len = 5 ref_len = 5)");
  EXPECT_EQ(score.signed_text(0),
            "BLEU|nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:starling-0.1.0 = 67 "
            "80.0/75.0/66.7/50.0 (BP = 1.000 ratio = 1.000 hyp_len = 5 ref_len = 5)");
  const auto json = score.to_json();
  EXPECT_EQ(json["score"].get<double>(), score.score);
  EXPECT_EQ(json["verbose_score"], score.verbose);
  EXPECT_EQ(json["nrefs"], "1");
  EXPECT_EQ(json["tok"], "none");
  EXPECT_EQ(json["version"], "starling-0.1.0");
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_EQ(keys, (Words{"name", "score", "signature", "verbose_score", "nrefs", "case", "eff", "tok", "smooth", "version"}));
  EXPECT_FALSE(score_of("ter", {"a"}, {"a"}).to_json().contains("verbose_score"));
}

}  // namespace
}  // namespace starling
