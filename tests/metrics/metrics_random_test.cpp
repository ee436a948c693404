// Metrics against naive implementations on random sentences, and for what must hold for every corpus.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "tests/metrics/scores.h"

namespace starling {
namespace {

// ---- Naive implementations on random sentences ----

using NgramCounts = std::map<Words, int>;

NgramCounts ngrams(const Words& words, std::size_t n) {
  NgramCounts counts;
  for (std::size_t i = 0; i + n <= words.size(); ++i) ++counts[Words(words.begin() + i, words.begin() + i + n)];
  return counts;
}

Words random_words(std::mt19937& random, int vocabulary, int longest) {
  Words words(random() % (longest + 1));
  for (auto& word : words) word = "w" + std::to_string(random() % vocabulary);
  return words;
}

std::string joined(const Words& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

TEST(Random, GleuIsTheSmallerOfNaivePrecisionAndRecallAndSymmetric) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 500; ++trial) {
    const Words a = random_words(random, 3, 10), b = random_words(random, 3, 10);
    double matches = 0, in_a = 0, in_b = 0;
    for (std::size_t n = 1; n <= 4; ++n) {
      const NgramCounts of_a = ngrams(a, n), of_b = ngrams(b, n);
      for (const auto& [ngram, count] : of_a) {
        in_a += count;
        if (const auto found = of_b.find(ngram); found != of_b.end()) matches += std::min(count, found->second);
      }
      for (const auto& [ngram, count] : of_b) in_b += count;
    }
    const double expected = in_a == 0 || in_b == 0 ? 0 : std::min(matches / in_a, matches / in_b);
    EXPECT_NEAR(gleu(joined(a), joined(b)), expected, 1e-12);
    EXPECT_EQ(gleu(joined(a), joined(b)), gleu(joined(b), joined(a)));
  }
}

TEST(Random, BleuCountsEqualNaiveOnes) {
  std::mt19937 random(7);
  int compared = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Corpus hypotheses;
    std::vector<Corpus> references(1 + trial % 3);
    double correct[4] = {}, total[4] = {};
    for (int sentence = 0; sentence < 4; ++sentence) {
      const Words hypothesis = random_words(random, 2, 12);
      hypotheses.push_back(joined(hypothesis));
      std::vector<Words> reference_words;
      for (auto& list : references) {
        reference_words.push_back(random_words(random, 2, 12));
        list.push_back(joined(reference_words.back()));
      }
      for (int n = 1; n <= 4; ++n) {
        for (const auto& [ngram, count] : ngrams(hypothesis, n)) {
          int allowed = 0;
          for (const Words& reference : reference_words) {
            const auto counts = ngrams(reference, n);
            const auto found = counts.find(ngram);
            if (found != counts.end()) allowed = std::max(allowed, found->second);
          }
          total[n - 1] += count;
          correct[n - 1] += std::min(count, allowed);
        }
      }
    }
    if (std::any_of(correct, correct + 4, [](double c) { return c == 0; })) continue;
    std::string precisions;
    for (int n = 0; n < 4; ++n) precisions += fmt::format("{}{:.1f}", n > 0 ? "/" : "", 100.0 * correct[n] / total[n]);
    const std::string verbose = evaluate("bleu", hypotheses, references, kPlain).verbose;
    EXPECT_EQ(verbose.substr(0, verbose.find(' ')), precisions);
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

int levenshtein(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int cost = std::min({diagonal + (a[i - 1] != b[j - 1]), row[j] + 1, row[j - 1] + 1});
      diagonal = std::exchange(row[j], cost);
    }
  }
  return row.back();
}

// Shifts are only made when they save edits, and cannot change which words there are.
TEST(Random, TerLiesBetweenBagDistanceAndLevenshtein) {
  std::mt19937 random(3);
  int shifted = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const auto sentence = [&] {
      std::vector<std::uint32_t> words(random() % 16);
      for (auto& word : words) word = random() % 6;
      return words;
    };
    auto hypothesis = sentence(), reference = sentence();
    const auto edits = translation_edits(hypothesis, reference);
    const int distance = levenshtein(hypothesis, reference);
    EXPECT_LE(edits, distance);
    shifted += edits < distance && !reference.empty();
    std::sort(hypothesis.begin(), hypothesis.end());
    std::sort(reference.begin(), reference.end());
    std::vector<std::uint32_t> common;
    std::set_intersection(hypothesis.begin(), hypothesis.end(), reference.begin(), reference.end(), std::back_inserter(common));
    EXPECT_GE(edits, static_cast<std::int64_t>(std::max(hypothesis.size(), reference.size()) - common.size()));
  }
  EXPECT_GT(shifted, 200);
}

// Far from equal lengths the band is widened; a single word against many, and the reverse, must still find the match.
TEST(Ter, VeryUnequalLengths) {
  std::vector<std::uint32_t> one{77}, many(200);
  std::iota(many.begin(), many.end(), 0u);
  EXPECT_EQ(translation_edits(one, many), 199);
  EXPECT_EQ(translation_edits(many, one), 199);
  EXPECT_EQ(translation_edits({}, many), 200);
}

// ---- What holds for every corpus ----

Corpus sample_corpus(unsigned seed, std::size_t sentences) {
  std::mt19937 random(seed);
  Corpus corpus;
  for (std::size_t i = 0; i < sentences; ++i) corpus.push_back("Der Satz " + joined(random_words(random, 9, 14)) + " endet, hier.");
  return corpus;
}

TEST(Property, PerfectTranslationsScoreFull) {
  const std::vector<Corpus> corpus{sample_corpus(1, 50)};
  for (const char* metric : {"bleu", "chrf", "chrf++", "gleu"}) EXPECT_NEAR(evaluate(metric, corpus[0], corpus).score, 100, 1e-9) << metric;
  EXPECT_EQ(evaluate("ter", corpus[0], corpus).score, 0);
  for (const auto& sentence : corpus[0]) EXPECT_EQ(gleu(sentence, sentence), 1);
}

TEST(Property, TheOrderOfSentencesDoesNotMatter) {
  const Corpus hypotheses = sample_corpus(1, 60), references = sample_corpus(2, 60);
  std::vector<std::size_t> order(hypotheses.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(5));
  Corpus shuffled_hypotheses, shuffled_references;
  for (const std::size_t i : order) {
    shuffled_hypotheses.push_back(hypotheses[i]);
    shuffled_references.push_back(references[i]);
  }
  for (const char* metric : {"bleu", "chrf", "chrf++", "ter"}) {
    const double score = evaluate(metric, hypotheses, std::vector<Corpus>{references}).score;
    EXPECT_GT(score, 1) << metric;
    EXPECT_EQ(evaluate(metric, shuffled_hypotheses, std::vector<Corpus>{shuffled_references}).score, score) << metric;
  }
}

TEST(Property, ARepeatedReferenceChangesNothing) {
  const Corpus hypotheses = sample_corpus(1, 40), references = sample_corpus(2, 40);
  for (const char* metric : {"bleu", "chrf", "chrf++", "ter", "gleu"}) {
    EXPECT_EQ(text_of(evaluate(metric, hypotheses, std::vector<Corpus>{references, references})),
              text_of(evaluate(metric, hypotheses, std::vector<Corpus>{references})))
        << metric;
  }
}

}  // namespace
}  // namespace starling
