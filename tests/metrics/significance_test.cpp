// Significance tests against what can be known exactly: closed forms, all exchanges of a few sentences one by one, and the same resampled
// corpora scored from their text. Seeds are fixed, so nothing here varies from run to run.
#include "metrics/significance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"

namespace starling {
namespace {

using Corpus = std::vector<std::string>;

constexpr std::uint64_t kSeed = 12345;
const char* const kMetrics[] = {"bleu", "chrf", "chrf++", "ter", "gleu"};

// Sentences of 6 to 12 words out of 60, the same for equal seeds.
Corpus sentences(std::uint64_t seed, int count) {
  Random random(seed, 1);
  Corpus corpus;
  for (int i = 0; i < count; ++i) {
    std::string line;
    const auto words = 6 + random.below(7);
    for (std::uint64_t w = 0; w < words; ++w) line += (w ? " w" : "w") + std::to_string(random.below(60));
    corpus.push_back(line);
  }
  return corpus;
}

// The corpus with some words replaced: each with the given probability.
Corpus noisy(const Corpus& corpus, double probability, std::uint64_t seed) {
  Random random(seed, 2);
  Corpus out;
  for (const std::string& line : corpus) {
    std::string noisy;
    for (std::size_t begin = 0; begin < line.size();) {
      const std::size_t end = std::min(line.find(' ', begin), line.size());
      noisy += noisy.empty() ? "" : " ";
      noisy += random.uniform() < probability ? "x" + std::to_string(random.below(9)) : line.substr(begin, end - begin);
      begin = end + 1;
    }
    out.push_back(noisy);
  }
  return out;
}

CountedMetric counted(const char* metric, const Corpus& hypotheses, const Corpus& references) {
  return count_metric(metric, hypotheses, References(&references, 1));
}

TEST(CountedMetric, AnySumOfRowsScoresAsTheTextOfTheseSentences) {
  const Corpus references = sentences(1, 30), hypotheses = noisy(references, 0.2, 2);
  for (const char* metric : kMetrics) {
    const CountedMetric all = counted(metric, hypotheses, references);
    ASSERT_EQ(all.sentences(), 30u);
    EXPECT_EQ(all.score(all.sums()), all.corpus.score) << metric;
    Random random(3, 0);
    for (int trial = 0; trial < 20; ++trial) {
      std::vector<double> sums(all.width);
      Corpus drawn, of_references;
      for (int i = 0; i < 25; ++i) {
        const std::size_t k = random.below(30);
        for (std::size_t n = 0; n < all.width; ++n) sums[n] += all.row(k)[n];
        drawn.push_back(hypotheses[k]), of_references.push_back(references[k]);
      }
      EXPECT_NEAR(all.score(sums), evaluate(metric, drawn, References(&of_references, 1)).score, 1e-9) << metric;
    }
  }
}

TEST(Significance, IdenticalSystemsDifferByChance) {
  const Corpus references = sentences(1, 40), hypotheses = noisy(references, 0.3, 2);
  for (const char* metric : kMetrics) {
    const std::vector<CountedMetric> systems(2, counted(metric, hypotheses, references));
    EXPECT_EQ(paired_bootstrap(systems, 100, kSeed)[1].p_value, 1.0) << metric;
    EXPECT_EQ(paired_randomization(systems, 100, kSeed)[1].p_value, 1.0) << metric;
  }
}

// Exchanging the only sentence that differs gives the two systems each other's scores: no test can call that more than chance.
TEST(Significance, OneSentenceProvesNothing) {
  const Corpus references = sentences(1, 40);
  Corpus other = references;
  other[7] = "nothing of this is right at all";
  for (const char* metric : kMetrics) {
    const CountedMetric systems[] = {counted(metric, other, references), counted(metric, references, references)};
    EXPECT_EQ(paired_randomization(systems, 200, kSeed)[1].p_value, 1.0) << metric;
  }
}

TEST(Significance, BetterOnEverySentenceGivesTheSmallestValueThereIs) {
  const Corpus references = sentences(1, 60), hypotheses = noisy(references, 0.7, 2);
  for (const char* metric : kMetrics) {
    const CountedMetric systems[] = {counted(metric, hypotheses, references), counted(metric, references, references)};
    const auto bootstrap = paired_bootstrap(systems, 200, kSeed), exchanges = paired_randomization(systems, 400, kSeed);
    EXPECT_EQ(bootstrap[1].p_value, 1 / 201.0) << metric;
    EXPECT_EQ(exchanges[1].p_value, 1 / 401.0) << metric;
    EXPECT_FALSE(bootstrap[0].p_value || exchanges[0].p_value || exchanges[1].mean || exchanges[1].ci);
  }
}

// All 2^10 ways to exchange ten sentences, scored from their text, against a sample of 20,000.
TEST(Significance, ExchangesAgreeWithAllOfThem) {
  constexpr int kSentences = 10, kTrials = 20000;
  const Corpus references = sentences(5, kSentences), a = noisy(references, 0.40, 6), b = noisy(references, 0.25, 7);
  for (const char* metric : kMetrics) {
    const auto difference = [&](unsigned mask) {
      Corpus first = a, second = b;
      for (int i = 0; i < kSentences; ++i) {
        if (mask >> i & 1) std::swap(first[i], second[i]);
      }
      const References one(&references, 1);
      return std::abs(evaluate(metric, first, one).score - evaluate(metric, second, one).score);
    };
    int as_large = 0;
    for (unsigned mask = 0; mask < 1u << kSentences; ++mask) as_large += difference(mask) >= difference(0) - 1e-9;
    const double exact = as_large / 1024.0;
    EXPECT_GT(exact, 0.005) << metric;
    EXPECT_LT(exact, 0.995) << metric;
    const CountedMetric systems[] = {counted(metric, a, references), counted(metric, b, references)};
    const double estimate = *paired_randomization(systems, kTrials, kSeed)[1].p_value;
    EXPECT_NEAR(estimate, exact, 4 * std::sqrt(exact * (1 - exact) / kTrials) + 1.0 / kTrials) << metric;
  }
}

// The definitions once more, by themselves: corpora drawn as text, scored as text.
TEST(Significance, BootstrapAgreesWithScoringTheDrawnTexts) {
  constexpr int kSentences = 50, kResamples = 400;
  const Corpus references = sentences(8, kSentences), a = noisy(references, 0.30, 9), b = noisy(references, 0.25, 10);
  for (const char* metric : {"bleu", "chrf"}) {
    std::vector<double> of_a, of_b, differences;
    Random random(99, 0);  // not the draws of the code under test
    for (int r = 0; r < kResamples; ++r) {
      Corpus drawn_a, drawn_b, drawn;
      for (int i = 0; i < kSentences; ++i) {
        const std::size_t k = random.below(kSentences);
        drawn_a.push_back(a[k]), drawn_b.push_back(b[k]), drawn.push_back(references[k]);
      }
      of_a.push_back(evaluate(metric, drawn_a, References(&drawn, 1)).score);
      of_b.push_back(evaluate(metric, drawn_b, References(&drawn, 1)).score);
      differences.push_back(std::abs(of_b.back() - of_a.back()));
    }
    const auto mean = [](const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0) / v.size(); };
    std::sort(of_b.begin(), of_b.end());
    const double half = (of_b[389] - of_b[10]) / 2;  // a fortieth of 400 on either side
    const CountedMetric systems[] = {counted(metric, a, references), counted(metric, b, references)};
    const auto tested = paired_bootstrap(systems, 4000, kSeed);
    // The mean of 400 values has a standard error of their deviation / 20, which is about half / 39; the ends of an interval one that is
    // about 2.7 times as large.
    EXPECT_NEAR(*tested[1].mean, mean(of_b), 4 * half / 39) << metric;
    EXPECT_NEAR(*tested[1].ci, half, 4 * 2.7 * half / 39) << metric;
    EXPECT_NEAR(*tested[0].mean, mean(of_a), 4 * half / 39) << metric;
    const double observed = std::abs(tested[1].score - tested[0].score), centre = mean(differences);
    const double p = std::count_if(differences.begin(), differences.end(), [&](double d) { return d - centre >= observed; }) / 400.0;
    EXPECT_GT(p, 0.01) << metric;  // neither end of the scale would show much
    EXPECT_NEAR(*tested[1].p_value, p, 4 * std::sqrt(p * (1 - p) / kResamples) + 1.0 / kResamples) << metric;
  }
}

TEST(Significance, EqualSeedsGiveEqualNumbersAndOthersDoNot) {
  const Corpus references = sentences(1, 40), a = noisy(references, 0.3, 2), b = noisy(references, 0.3, 3);
  const CountedMetric systems[] = {counted("bleu", a, references), counted("bleu", b, references)};
  EXPECT_EQ(paired_bootstrap(systems, 100, 1)[1].mean, paired_bootstrap(systems, 100, 1)[1].mean);
  EXPECT_NE(paired_bootstrap(systems, 100, 1)[1].mean, paired_bootstrap(systems, 100, 2)[1].mean);
  EXPECT_EQ(paired_randomization(systems, 999, 1)[1].p_value, paired_randomization(systems, 999, 1)[1].p_value);
  EXPECT_NE(paired_randomization(systems, 999, 1)[1].p_value, paired_randomization(systems, 999, 2)[1].p_value);
}

TEST(Significance, TheIntervalOfADifferenceHoldsTheDifference) {
  const Corpus references{"the cat sat on the mat today", "a dog runs in the big park", "we saw two red houses there",
                          "she reads a very old book", "they play by the river side"};
  Corpus worse = references;
  worse[1] = "a dog runs in a park", worse[3] = "she has a very old book";
  const CountedMetric good = counted("bleu", references, references), bad = counted("bleu", worse, references);
  const double difference = good.corpus.score - bad.corpus.score;
  const ScoreInterval i = difference_interval(good, bad), back = difference_interval(bad, good);
  EXPECT_LT(i.low, difference);
  EXPECT_GT(i.high, difference);
  EXPECT_GE(i.low, 0);  // never better in any sample
  EXPECT_NEAR(i.low, -back.high, 1e-9);
  EXPECT_NEAR(i.high, -back.low, 1e-9);
  const ScoreInterval none = difference_interval(bad, bad);
  EXPECT_EQ(none.low, 0);
  EXPECT_EQ(none.high, 0);
  // One sentence can only be drawn as itself.
  const CountedMetric one_good = counted("bleu", {references[1]}, {references[1]}), one_bad = counted("bleu", {worse[1]}, {references[1]});
  const ScoreInterval exact = difference_interval(one_good, one_bad);
  EXPECT_EQ(exact.low, exact.high);
  EXPECT_NEAR(exact.low, one_good.corpus.score - one_bad.corpus.score, 1e-9);
}

}  // namespace
}  // namespace starling
