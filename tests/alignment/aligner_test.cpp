// The aligner against fast_align's numbers and links (fixtures/alignment, made by that program), and symmetrisations against atools'.
#include "alignment/aligner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "alignment/diagonal.h"
#include "alignment/symmetrise.h"

namespace starling {
namespace {

std::ifstream fixture(const std::string& name) { return std::ifstream(STARLING_SOURCE_DIR "/tests/fixtures/alignment/" + name); }

// The fixture's text, with numbers for words.
struct TinyText {
  TinyText() {
    std::ifstream file = fixture("tiny.txt");
    for (std::string line; std::getline(file, line);) {
      NumberedPair pair;
      bool target = false;
      std::istringstream words(line);
      for (std::string word; words >> word;) {
        if (word == "|||")
          target = true;
        else
          (target ? pair.target : pair.source).push_back(numbers.try_emplace(word, numbers.size() + 1).first->second);
      }
      pairs.push_back(pair);
      reverse.push_back({pair.target, pair.source});
    }
  }
  std::map<std::string, uint32_t> numbers;
  std::vector<NumberedPair> pairs, reverse;
};

AlignerOptions options_of(const std::string& run) {
  AlignerOptions o;
  o.slips = true;
  o.diagonal = run.starts_with("diagonal") || run.starts_with("full");
  o.optimize_tension = run.starts_with("full");
  o.alpha = run.ends_with("vb") || run.starts_with("full") ? 0.01 : 0;
  o.null_word = run != "model1-nonull";
  o.iterations = run == "model1-10" ? 10 : 5;
  return o;
}

Links swapped(Links links) {
  for (auto& [s, t] : links) std::swap(s, t);
  return links;
}

// Whether a number is the printed one, of six digits.
void expect_printed(double value, const std::string& printed, const std::string& what) {
  if (printed.empty()) return;
  EXPECT_NEAR(value, std::stod(printed), 1e-5 * std::abs(std::stod(printed))) << what;
}

TEST(AlignerNumbers, AreFastAligns) {
  const TinyText text;
  std::map<std::string, std::vector<std::vector<std::string>>> expected;  // rows by run
  std::ifstream file = fixture("tiny-statistics.tsv");
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> row(1);
    for (const char c : line) c == '\t' ? void(row.emplace_back()) : row.back().push_back(c);
    if (row.at(0) != "run") expected[row[0]].push_back(row);
  }
  EXPECT_EQ(expected.size(), 8u);
  for (const auto& [run, rows] : expected) {
    size_t at = 0;
    Aligner(run == "full-reverse" ? text.reverse : text.pairs, options_of(run), [&](const AlignerStatistics& s) {
      const std::vector<std::string>& row = rows.at(at);
      const std::string what = run + ", iteration " + row[2];
      expect_printed(s.log_likelihood, row.at(3), what + ", likelihood");
      expect_printed(s.bits, row.at(4), what + ", bits");
      if (++at < rows.size()) {
        expect_printed(s.null_share, row.at(5), what + ", null");
        expect_printed(s.feature, row.at(6), what + ", feature");
        expect_printed(s.tension, row.at(7), what + ", tension");
      }
    });
    EXPECT_EQ(at, rows.size()) << run;
  }
}

TEST(AlignerLinks, AreFastAlignsAndSymmetrisedAsAtoolsDoes) {
  const TinyText text;
  std::map<std::string, Aligner> aligners;
  for (const char* run : {"model1", "model1-10", "model1-vb", "model1-nonull", "diagonal", "diagonal-vb", "full", "full-reverse"})
    aligners.try_emplace(run, run == std::string("full-reverse") ? text.reverse : text.pairs, options_of(run));
  std::ifstream file = fixture("tiny-links.tsv");
  std::vector<std::string> names;
  size_t line_number = 0;
  for (std::string line; std::getline(file, line); ++line_number) {
    std::vector<std::string> row(1);
    for (const char c : line) c == '\t' ? void(row.emplace_back()) : row.back().push_back(c);
    if (line_number == 0) {
      names = row;
      continue;
    }
    const size_t k = line_number - 1;
    const Links forward = aligners.at("full").links(text.pairs[k]), reverse = swapped(aligners.at("full-reverse").links(text.reverse[k]));
    for (size_t column = 1; column < row.size(); ++column) {
      Links links;
      if (names[column] == "full-reverse")
        links = reverse;
      else if (aligners.contains(names[column]))
        links = aligners.at(names[column]).links(text.pairs[k]);
      else
        for (size_t i = 0; i < words(Symmetrisation{}).size(); ++i)
          if (names[column] == words(Symmetrisation{})[i]) links = symmetrised(forward, reverse, static_cast<Symmetrisation>(i));
      EXPECT_EQ(links, parse_links(row[column])) << names[column] << ", line " << row[0];
    }
  }
  EXPECT_EQ(line_number, 19u);
}

TEST(AlignerTable, IsFastAligns) {
  const TinyText text;
  std::map<std::string, Aligner> aligners;
  std::ifstream file = fixture("tiny-lexicon.tsv");
  int compared = 0;
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> row(1);
    for (const char c : line) c == '\t' ? void(row.emplace_back()) : row.back().push_back(c);
    if (row.at(0) == "run") continue;
    const auto aligner = aligners.try_emplace(row[0], row[0] == "full-reverse" ? text.reverse : text.pairs, options_of(row[0])).first;
    const uint32_t condition = row.at(1) == "<eps>" ? kNullWord : text.numbers.at(row[1]);
    EXPECT_NEAR(aligner->second.log_translation(condition, text.numbers.at(row.at(2))), std::stod(row.at(3)), 6e-5) << line;
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

TEST(AlignerPrior, SumsAndExpectationsAreThoseOfTheirDefinition) {
  for (const double tension : {0.1, 1.0, 4.0, 13.9})
    for (const auto& [n, m] : {std::pair{1, 1}, {5, 3}, {3, 7}, {12, 12}, {1, 9}, {40, 2}})
      for (int64_t j = 1; j <= m; ++j) {
        double sum = 0, weighted = 0;
        for (int64_t i = 1; i <= n; ++i) {
          const double h = diagonal_feature(i, j, n, m);
          sum += std::exp(tension * h);
          weighted += h * std::exp(tension * h);
        }
        EXPECT_NEAR(diagonal_sum(j, n, m, tension), sum, 1e-9 * sum);
        EXPECT_NEAR(diagonal_expectation(j, n, m, tension, false), weighted / sum, 1e-9);
      }
}

// Without the slips its steps follow the gradient of the likelihood, so that it ends where the text is more likely.
TEST(AlignerPrior, TheTensionWithoutSlipsMakesTheTextMoreLikely) {
  const TinyText text;
  AlignerOptions o = options_of("full");
  AlignerStatistics slips, right;
  Aligner(text.pairs, o, [&](const AlignerStatistics& s) { slips = s; });
  o.slips = false;
  Aligner(text.pairs, o, [&](const AlignerStatistics& s) { right = s; });
  EXPECT_GT(right.log_likelihood, slips.log_likelihood + 10);
  o.optimize_tension = false;  // the same tension, not found but given
  o.tension = right.tension;
  double given = 0;
  Aligner(text.pairs, o, [&](const AlignerStatistics& s) { given = s.log_likelihood; });
  o.tension = slips.tension;
  double of_slips = 0;
  Aligner(text.pairs, o, [&](const AlignerStatistics& s) { of_slips = s.log_likelihood; });
  EXPECT_GT(given, of_slips + 10);
}

TEST(AlignerThreads, ChangeNothing) {
  TinyText text;
  std::vector<NumberedPair> many;
  for (int i = 0; i < 200; ++i) many.insert(many.end(), text.pairs.begin(), text.pairs.end());
  AlignerOptions o;
  std::vector<double> likelihoods[2];
  for (const int threads : {1, 3}) {
    o.threads = threads;
    Aligner(many, o, [&](const AlignerStatistics& s) { likelihoods[threads / 2].push_back(s.log_likelihood); });
  }
  EXPECT_EQ(likelihoods[0], likelihoods[1]);
}

TEST(AlignerText, EmptySidesAndUnknownWords) {
  TinyText text;
  text.pairs.push_back({{}, {1, 2}});
  text.pairs.push_back({{1}, {}});
  const Aligner aligner(text.pairs, {});
  EXPECT_TRUE(aligner.links({{}, {3}}).empty());
  EXPECT_TRUE(aligner.links({{3}, {}}).empty());
  EXPECT_TRUE(std::isfinite(aligner.log_probability({{99999}, {88888}})));
  EXPECT_GT(aligner.log_probability(text.pairs[0]), aligner.log_probability({text.pairs[0].source, text.pairs[9].target}));
}

}  // namespace
}  // namespace starling
