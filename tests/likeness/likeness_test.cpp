// Trigram models against the formulas computed plainly, and scores that tell one text from another.
#include "likeness/likeness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "likeness/ngram_model.h"
#include "tests/own_directory.h"

namespace starling {
namespace {

std::vector<WordIds> some_text() {
  std::mt19937 random(3);
  std::vector<WordIds> text(300);
  for (WordIds& sentence : text)
    for (size_t i = 0, n = random() % 9; i < n; ++i) sentence.push_back(1 + std::min(random() % 12, random() % 12));
  return text;
}

TEST(NgramModel, ProbabilitiesSumToOne) {
  const NgramModel model(some_text(), 20);
  for (const auto& [a, b] :
       {std::pair(model.begin(), model.begin()), {model.begin(), 1u}, {1u, 2u}, {3u, 3u}, {18u, 19u}, {2u, 19u}, {0u, 0u}}) {
    double sum = model.probability(a, b, model.end());
    for (uint32_t c = 0; c < 20; ++c) sum += model.probability(a, b, c);
    EXPECT_NEAR(sum, 1, 1e-12) << a << " " << b;
  }
}

// The same by sets and maps.
TEST(NgramModel, IsInterpolatedKneserNey) {
  const std::vector<WordIds> text = some_text();
  const NgramModel model(text, 20);
  using Three = std::array<uint32_t, 3>;
  std::map<Three, double> trigrams;
  for (const WordIds& sentence : text) {
    WordIds all{model.begin(), model.begin()};
    all.insert(all.end(), sentence.begin(), sentence.end());
    all.push_back(model.end());
    for (size_t i = 2; i < all.size(); ++i) ++trigrams[{all[i - 2], all[i - 1], all[i]}];
  }
  std::map<std::pair<uint32_t, uint32_t>, double> bigrams;
  std::map<uint32_t, double> unigrams;
  for (const auto& [t, count] : trigrams) ++bigrams[{t[1], t[2]}];
  for (const auto& [b, count] : bigrams) ++unigrams[b.second];
  const auto discount = [](const auto& counts) {
    double once = 0, twice = 0;
    for (const auto& [what, count] : counts) once += count == 1, twice += count == 2;
    return once == 0 || twice == 0 ? 0.5 : once / (once + 2 * twice);
  };
  const auto expected = [&](uint32_t a, uint32_t b, uint32_t c) {
    double all = 0;
    for (const auto& [word, count] : unigrams) all += count;
    const double d1 = discount(unigrams), d2 = discount(bigrams), d3 = discount(trigrams);
    double p =
        (std::max(unigrams[c] - d1, 0.0) +
         d1 * static_cast<double>(std::count_if(unigrams.begin(), unigrams.end(), [](const auto& u) { return u.second > 0; })) / 21) /
        all;
    double sum = 0, types = 0;
    for (const auto& [two, count] : bigrams)
      if (two.first == b) sum += count, ++types;
    if (sum > 0) p = (std::max((bigrams.contains({b, c}) ? bigrams[{b, c}] : 0) - d2, 0.0) + d2 * types * p) / sum;
    sum = types = 0;
    for (const auto& [three, count] : trigrams)
      if (three[0] == a && three[1] == b) sum += count, ++types;
    if (sum > 0) p = (std::max((trigrams.contains({a, b, c}) ? trigrams[{a, b, c}] : 0) - d3, 0.0) + d3 * types * p) / sum;
    return p;
  };
  for (uint32_t a = 0; a < 22; a += 3)
    for (uint32_t b = 0; b < 21; b += 2)
      for (uint32_t c = 0; c < 20; c += 1) {
        if (!unigrams.contains(c)) continue;  // asking would add it
        ASSERT_NEAR(model.probability(a, b, c), expected(a, b, c), 1e-12) << a << " " << b << " " << c;
      }
  EXPECT_NEAR(model.log_probability({1, 2}),
              std::log(model.probability(20, 20, 1) * model.probability(20, 1, 2) * model.probability(1, 2, 21)), 1e-12);
}

TEST(Likeness, TellsTextsApart) {
  const OwnDirectory own;
  std::mt19937 random(5);
  const std::vector<std::string> sea = {"the", "ship", "sails", "over", "deep", "water", "with", "wind", "and", "waves"},
                                 law = {"the", "court", "of", "appeal", "shall", "decide", "on", "this", "matter", "and"};
  const auto line = [&](const std::vector<std::string>& words) {
    std::string text;
    for (size_t i = 0; i < 8; ++i) text += words[random() % words.size()] + " ";
    return text;
  };
  {
    std::ofstream text(own.file("text")), like(own.file("like")), text_tsv(own.file("text.tsv")), like_tsv(own.file("like.tsv"));
    for (int i = 0; i < 2000; ++i) {
      const std::string one = line(i % 4 == 0 ? sea : law), other = line(sea);
      text << one << "\n", like << other << "\n";
      text_tsv << one << "\t" << one << "\n", like_tsv << other << "\t" << other << "\n";
    }
  }
  LikenessJob job;
  job.text.source = own.file("text");
  job.like.source = own.file("like");
  job.one_language = true;
  std::vector<double> scores;
  const LikenessCounts counts = score_likeness(job, {}, [&](double score) { scores.push_back(score); });
  EXPECT_EQ(counts.lines, 2000);
  EXPECT_EQ(counts.sampled, 1000);
  double least = 1e9, most = -1e9;
  for (size_t i = 0; i < scores.size(); ++i)
    (i % 4 == 0 ? least : most) = i % 4 == 0 ? std::min(least, scores[i]) : std::max(most, scores[i]);
  EXPECT_GT(least, most);  // every line of the sea is above every line of the law
  LikenessJob pairs;
  pairs.text.tsv = own.file("text.tsv");
  pairs.like.tsv = own.file("like.tsv");
  pairs.threads = 3;
  size_t i = 0;
  score_likeness(pairs, {}, [&](double score) {
    EXPECT_NEAR(score, 2 * scores[i], 1e-9) << i;
    ++i;
  });
  EXPECT_EQ(i, 2000u);
}

// Lines that a model was trained on are more probable to it than others like them, so they must not be scored by it.
TEST(Likeness, LinesOfTheSampleScoreAsOthers) {
  const OwnDirectory own;
  std::mt19937 random(7);
  {
    std::ofstream text(own.file("text")), like(own.file("like"));
    for (std::ofstream* file : {&text, &like})
      for (int i = 0; i < 4000; ++i) {
        for (int k = 0; k < 6; ++k) *file << "w" << random() % 500 << ' ';
        *file << '\n';
      }
  }
  LikenessJob job;
  job.text.source = own.file("text");
  job.like.source = own.file("like");
  job.one_language = true;
  job.sample = 500;  // each model of the text; 1,000 of its 4,000 lines
  std::vector<double> scores;
  score_likeness(job, {}, [&](double score) { scores.push_back(score); });
  double taken = 0, others = 0;
  for (size_t i = 0; i < scores.size(); ++i) ((i + 1) % 4 == 0 ? taken : others) += scores[i];
  EXPECT_NEAR(taken / 1000, others / 3000, 0.02);
  std::ofstream(own.file("text"), std::ios::app) << "w1 \xFF w2\n";  // a damaged line has a score too
  size_t lines = 0;
  score_likeness(job, {}, [&](double score) { lines += std::isfinite(score); });
  EXPECT_EQ(lines, 4001u);
  job.text.source = own.file("one");
  std::ofstream(own.file("one")) << "a line alone\n";
  score_likeness(job, {}, [&](double score) { EXPECT_TRUE(std::isfinite(score)); });
}

}  // namespace
}  // namespace starling
