// The regression of confidence against closed forms and another solver, labels against alignments made by hand.
#include "evaluation/confidence_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "metrics/metrics.h"

namespace starling {
namespace {

using testing::ElementsAre;

// Words of a text that are cut into pieces as a vocabulary would: at spaces.
std::vector<TextWord> spaced(std::string_view text) {
  std::vector<Range> pieces;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin + 1), text.size());
    pieces.push_back({static_cast<int64_t>(begin), static_cast<int64_t>(end)});
    begin = end;
  }
  return words_of_pieces(text, pieces);
}

std::vector<bool> confirmed(std::string_view translation, std::string_view reference) {
  return confirmed_words(translation, spaced(translation), reference, spaced(reference));
}

TEST(ConfirmedWords, AreThoseThatTheReferenceHas) {
  EXPECT_THAT(confirmed("Ein Hund rennt am Strand.", "Ein Hund läuft am Strand."), ElementsAre(true, true, false, true, true));
  EXPECT_THAT(confirmed("am Strand rennt ein Hund", "ein Hund rennt am Strand"), ElementsAre(true, true, true, true, true)) << "moved";
  EXPECT_THAT(confirmed("d e f a b x", "a b c d e f"), ElementsAre(true, true, true, true, true, false)) << "moved, and a wrong one";
  EXPECT_THAT(confirmed("Hund Hund", "ein Hund"), ElementsAre(false, true)) << "the reference has one";
  EXPECT_THAT(confirmed("Strand, hund", "\"Strand\" Hund!"), ElementsAre(true, false)) << "marks do not count, capitals do";
  EXPECT_THAT(confirmed("- a", "a -"), ElementsAre(true, true)) << "a word of marks alone is itself";
  EXPECT_THAT(confirmed("a b", ""), ElementsAre(false, false));
  EXPECT_TRUE(confirmed("", "a").empty());
}

// Matched words are words of both sides, and what is not matched costs an edit each.
TEST(ConfirmedWords, AgreeWithTheEditsOfRandomSentences) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 2000; ++trial) {
    const auto sentence = [&] {
      std::vector<uint32_t> words(random() % 16);
      for (auto& word : words) word = random() % 6;
      return words;
    };
    const auto hypothesis = sentence(), reference = sentence();
    const std::vector<bool> matched = matched_words(hypothesis, reference);
    ASSERT_EQ(matched.size(), hypothesis.size());
    std::vector<uint32_t> words, common, left = hypothesis, right = reference;
    for (size_t i = 0; i < matched.size(); ++i)
      if (matched[i]) words.push_back(hypothesis[i]);
    std::sort(words.begin(), words.end()), std::sort(left.begin(), left.end()), std::sort(right.begin(), right.end());
    EXPECT_TRUE(std::includes(right.begin(), right.end(), words.begin(), words.end()));
    const auto most = std::max(hypothesis.size(), reference.size());
    EXPECT_GE(translation_edits(hypothesis, reference), static_cast<int64_t>(most - words.size()));
  }
}

std::vector<JudgedSentence> random_words(int sentences, const std::array<double, 6>& weights, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<JudgedSentence> all(static_cast<size_t>(sentences));
  for (JudgedSentence& s : all)
    for (int i = 0; i < 5; ++i) {
      JudgedWord w;
      double logit = 0.3;
      for (size_t f = 0; f < 6; ++f) w.features[f] = 2 + normal(random) * (1 + static_cast<double>(f)), logit += weights[f] * w.features[f];
      w.right = uniform(random) < 1 / (1 + std::exp(-logit));
      s.push_back(w);
    }
  return all;
}

// Two groups of words: the likelihood is largest where each has the share that is right.
TEST(ConfidenceFit, IsTheShareOfEachOfTwoGroups) {
  std::vector<JudgedSentence> sentences;
  for (int i = 0; i < 4000; ++i) {
    const bool group = i % 2 == 0;
    JudgedWord w;
    w.features = {group ? 3.0 : 1.0, -1, 0, -1, 2, 2};  // the others are alike everywhere
    w.right = i % 20 < 10 ? (group ? i % 10 != 0 : i % 10 == 1) : group;
    sentences.push_back({w});
  }
  double right[2] = {}, count[2] = {};
  for (const JudgedSentence& s : sentences) ++count[s[0].features[0] == 3], right[s[0].features[0] == 3] += s[0].right;
  const ConfidenceModel model = fit_confidence(sentences);
  for (const int group : {0, 1})
    EXPECT_NEAR(model.word({group == 1 ? 3.0 : 1.0, -1, 0, -1, 2, 2}), right[group] / count[group], 2e-3) << "the ridge moves it a little";
  for (size_t f = 1; f < 6; ++f) EXPECT_NEAR(model.terms[f].weight, 0, 1e-12) << kWordFeatures[f];
  // Numbers beyond those seen count as the nearest of them.
  EXPECT_EQ(model.word({100, 5, 9, 9, 9, 9}), model.word({3, -1, 0, -1, 2, 2}));
  EXPECT_EQ(model.word({-1e300, -1e300, 0, 0, 0, 0}), model.word({1, -1, 0, -1, 2, 2}));
}

// Gradient descent on the same penalised likelihood, written anew, finds the same weights.
TEST(ConfidenceFit, IsWhatGradientDescentFinds) {
  const std::vector<JudgedSentence> sentences = random_words(200, {0.5, 0.2, -0.3, 0.1, 0.05, 0.15}, 3);
  const ConfidenceModel model = fit_confidence(sentences);
  std::vector<const JudgedWord*> words;
  for (const JudgedSentence& s : sentences)
    for (const JudgedWord& w : s) words.push_back(&w);
  const double n = static_cast<double>(words.size());
  double mean[6] = {}, deviation[6] = {}, b[7] = {};
  for (int f = 0; f < 6; ++f) {
    for (const JudgedWord* w : words) mean[f] += w->features[f] / n;
    for (const JudgedWord* w : words) deviation[f] += std::pow(w->features[f] - mean[f], 2) / n;
    deviation[f] = std::sqrt(deviation[f]);
  }
  for (int step = 0; step < 3000; ++step) {
    double g[7] = {};
    for (const JudgedWord* w : words) {
      double logit = b[6];
      for (int f = 0; f < 6; ++f) logit += b[f] * (w->features[f] - mean[f]) / deviation[f];
      const double error = w->right - 1 / (1 + std::exp(-logit));
      for (int f = 0; f < 6; ++f) g[f] += error * (w->features[f] - mean[f]) / deviation[f];
      g[6] += error;
    }
    for (int f = 0; f < 7; ++f) b[f] += (g[f] - (f < 6 ? b[f] : 0)) / n;
  }
  double intercept = b[6];
  for (int f = 0; f < 6; ++f) {
    EXPECT_NEAR(model.terms[f].weight, b[f] / deviation[f], 1e-6) << kWordFeatures[f];
    intercept -= b[f] * mean[f] / deviation[f];
  }
  EXPECT_NEAR(model.intercept, intercept, 1e-6);
  // Without a penalty on the intercept, as much is predicted as observed.
  double predicted = 0, observed = 0;
  for (const JudgedWord* w : words) predicted += model.word(w->features), observed += w->right;
  EXPECT_NEAR(predicted, observed, 1e-6 * n);
}

TEST(ConfidenceFit, NeverFallsWithAProbability) {
  const std::vector<JudgedSentence> sentences = random_words(300, {0.5, -0.4, -0.3, 0.2, -0.1, 0.1}, 4);
  const ConfidenceModel model = fit_confidence(sentences);
  for (size_t f = 0; f < 6; ++f) EXPECT_TRUE(f == 2 || model.terms[f].weight >= 0) << kWordFeatures[f];
  EXPECT_EQ(model.terms[1].weight, 0) << "whose likelihood wants it below 0";
  EXPECT_LT(model.terms[2].weight, 0) << "pieces may";
}

TEST(ConfidenceFit, NeedsWordsOfBothKinds) {
  std::vector<JudgedSentence> sentences = random_words(300, {}, 5);
  for (JudgedSentence& s : sentences)
    for (JudgedWord& w : s) w.right = true;
  for (int i = 0; i < 99; ++i) sentences[static_cast<size_t>(i)][0].right = false;
  try {
    fit_confidence(sentences);
    ADD_FAILURE() << "99 wrong words were enough";
  } catch (const DataError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("1401 are right and 99 are wrong, but a calibration needs 100 of each"));
  }
  sentences[99][0].right = false;
  EXPECT_NO_THROW(fit_confidence(sentences));
  EXPECT_THROW(fit_confidence({}), DataError);
}

TEST(ConfidenceQuality, OfNumbersMadeByHand) {
  const std::vector<double> predicted{0.05, 0.95, 0.91, 1.0, 0.55}, observed{0, 1, 0, 1, 1};
  const Reliability r = reliability(predicted, observed);
  // Groups: 0.05 to 0, off by 0.05; three of mean 0.95333 to 2/3, off by 0.28667; 0.55 to 1, off by 0.45.
  EXPECT_NEAR(r.error, (0.05 + 3 * (2.86 / 3 - 2.0 / 3) + 0.45) / 5, 1e-12);
  EXPECT_EQ(r.groups[9].count, 3);
  EXPECT_NEAR(r.groups[9].observed, 2.0 / 3, 1e-12);
  // Of the six pairs of a right and a wrong one, 0.95, 1.0 and 0.55 are above 0.05; 0.95 and 1.0 above 0.91.
  EXPECT_NEAR(area_under_curve(predicted, {false, true, false, true, true}), 5.0 / 6, 1e-12);
  EXPECT_EQ(area_under_curve(std::vector{1.0, 1.0}, {true, false}), 0.5) << "a tie";
  EXPECT_EQ(area_under_curve(std::vector{1.0}, {true}), 0.5);
}

// A half in which all words are right tells the other one nothing, but it ends.
TEST(ConfidenceQuality, OfHalvesWithOneKindOfWords) {
  std::vector<JudgedSentence> sentences = random_words(60, {}, 7);
  for (size_t i = 0; i < sentences.size(); ++i)
    for (JudgedWord& w : sentences[i]) w.right = i % 2 == 0;
  const ConfidenceQuality q = cross_measured_confidence(sentences);
  EXPECT_NEAR(q.of_words.error, 1, 1e-3) << "predicted from the half where the opposite was observed";
  EXPECT_EQ(q.words, 300);
}

// Each half is measured by the fit of the other one: noise that a fit could learn does not look good.
TEST(ConfidenceQuality, IsMeasuredOnWhatTheFitHasNotSeen) {
  const std::vector<JudgedSentence> sentences = random_words(400, {0.3, 0.1, -0.1, 0.1, 0.0, 0.1}, 6);
  std::vector<JudgedSentence> odd;
  for (size_t i = 1; i < sentences.size(); i += 2) odd.push_back(sentences[i]);
  const ConfidenceModel by_odd = fit_confidence(odd);
  std::vector<double> values;
  std::vector<bool> right;
  for (size_t i = 0; i < sentences.size(); ++i)
    if (i % 2 == 0)
      for (const JudgedWord& w : sentences[i]) values.push_back(by_odd.word(w.features)), right.push_back(w.right);
  std::vector<JudgedSentence> even = sentences;
  for (size_t i = 1; i < even.size(); i += 2) even[i].clear();  // nothing to measure there, and nothing to fit on
  const ConfidenceQuality all = cross_measured_confidence(sentences);
  EXPECT_EQ(all.words, 2000);
  EXPECT_EQ(all.sentences, 400);
  EXPECT_GT(all.auc, 0.6);
  EXPECT_NEAR(measure_confidence(by_odd, even).auc, area_under_curve(values, right), 1e-12);
  EXPECT_LT(all.auc, measure_confidence(fit_confidence(sentences), sentences).auc + 0.01);
}

}  // namespace
}  // namespace starling
