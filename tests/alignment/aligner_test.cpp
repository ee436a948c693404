// The aligner against fast_align's numbers and links (fixtures/alignment, made by that program), and symmetrisations against atools'.
#include "alignment/aligner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "alignment/diagonal.h"
#include "alignment/symmetrise.h"
#include "tests/cleaning/table_rows.h"

namespace starling {
namespace {

// The fixture's text, with numbers for words.
struct TinyText {
  TinyText() {
    std::ifstream file(STARLING_SOURCE_DIR "/tests/fixtures/alignment/tiny.txt");
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
  o.model = run.starts_with("model1") ? AlignmentModel::model1 : AlignmentModel::diagonal;
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
  for (const std::vector<std::string>& row : table_rows("alignment/tiny-statistics.tsv"))
    if (row.at(0) != "run") expected[row[0]].push_back(row);
  EXPECT_EQ(expected.size(), 8u);
  for (const auto& [run, rows] : expected) {
    size_t at = 0;
    const auto compare = [&](const AlignerStatistics& s) {
      const std::vector<std::string>& row = rows.at(at);
      const std::string what = run + ", iteration " + row[2];
      expect_printed(s.log_likelihood, row.at(3), what + ", likelihood");
      expect_printed(s.bits, row.at(4), what + ", bits");
      if (++at < rows.size()) {
        expect_printed(s.null_share, row.at(5), what + ", null");
        expect_printed(s.feature, row.at(6), what + ", feature");
        expect_printed(s.tension, row.at(7), what + ", tension");
      }
    };
    const std::vector<NumberedPair>& pairs = run == "full-reverse" ? text.reverse : text.pairs;
    compare(Aligner(pairs, options_of(run), compare).statistics(pairs));
    EXPECT_EQ(at, rows.size()) << run;
  }
}

TEST(AlignerLinks, AreFastAlignsAndSymmetrisedAsAtoolsDoes) {
  const TinyText text;
  std::map<std::string, Aligner> aligners;
  for (const char* run : {"model1", "model1-10", "model1-vb", "model1-nonull", "diagonal", "diagonal-vb", "full", "full-reverse"})
    aligners.try_emplace(run, run == std::string("full-reverse") ? text.reverse : text.pairs, options_of(run));
  const std::vector<std::vector<std::string>> rows = table_rows("alignment/tiny-links.tsv");
  const std::vector<std::string>& names = rows.at(0);
  for (size_t k = 0; k + 1 < rows.size(); ++k) {
    const std::vector<std::string>& row = rows[k + 1];
    const Links forward = aligners.at("full").align(text.pairs[k]).links,
                reverse = swapped(aligners.at("full-reverse").align(text.reverse[k]).links);
    for (size_t column = 1; column < row.size(); ++column) {
      Links links;
      if (names[column] == "full-reverse")
        links = reverse;
      else if (aligners.contains(names[column]))
        links = aligners.at(names[column]).align(text.pairs[k]).links;
      else
        for (size_t i = 0; i < words(Symmetrisation{}).size(); ++i)
          if (names[column] == words(Symmetrisation{})[i]) links = symmetrised(forward, reverse, static_cast<Symmetrisation>(i));
      EXPECT_EQ(links, parse_links(row[column])) << names[column] << ", line " << row[0];
    }
  }
  EXPECT_EQ(rows.size(), 19u);
}

TEST(AlignerTable, IsFastAligns) {
  const TinyText text;
  std::map<std::string, Aligner> aligners;
  int compared = 0;
  for (const std::vector<std::string>& row : table_rows("alignment/tiny-lexicon.tsv")) {
    if (row.at(0) == "run") continue;
    const auto aligner = aligners.try_emplace(row[0], row[0] == "full-reverse" ? text.reverse : text.pairs, options_of(row[0])).first;
    const uint32_t condition = row.at(1) == "<eps>" ? kNullWord : text.numbers.at(row[1]);
    EXPECT_NEAR(aligner->second.log_translation(condition, text.numbers.at(row.at(2))), std::stod(row.at(3)), 6e-5)
        << row[0] << " " << row[1] << " " << row[2];
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
  const AlignerStatistics slips = Aligner(text.pairs, o).statistics(text.pairs);
  o.slips = false;
  const AlignerStatistics right = Aligner(text.pairs, o).statistics(text.pairs);
  EXPECT_GT(right.log_likelihood, slips.log_likelihood + 10);
  o.optimize_tension = false;  // the same tension, not found but given
  o.tension = right.tension;
  const double given = Aligner(text.pairs, o).statistics(text.pairs).log_likelihood;
  o.tension = slips.tension;
  EXPECT_GT(given, Aligner(text.pairs, o).statistics(text.pairs).log_likelihood + 10);
}

TEST(AlignerThreads, ChangeNothing) {
  TinyText text;
  std::vector<NumberedPair> many;
  for (int i = 0; i < 200; ++i) many.insert(many.end(), text.pairs.begin(), text.pairs.end());
  for (const AlignmentModel model : {AlignmentModel::hmm, AlignmentModel::diagonal, AlignmentModel::model1}) {
    AlignerOptions o;
    o.model = model;
    std::vector<double> numbers[2];
    for (const int threads : {1, 4}) {
      o.threads = threads;
      std::vector<double>& all = numbers[threads / 4];
      const auto keep = [&](const AlignerStatistics& s) { all.push_back(s.log_likelihood); };
      Aligner aligner(many, o, keep);
      keep(aligner.statistics(many));
      for (size_t place = 0; place < aligner.table().pairs().size(); ++place) all.push_back(aligner.table().at_place(place));
      for (const JumpWidths& w : aligner.jumps().weights) all.insert(all.end(), w.begin(), w.end());
    }
    EXPECT_EQ(numbers[0], numbers[1]);
  }
}

TEST(AlignerText, EmptySidesAndUnknownWords) {
  TinyText text;
  text.pairs.push_back({{}, {1, 2}});
  text.pairs.push_back({{1}, {}});
  const Aligner aligner(text.pairs, {});
  EXPECT_TRUE(aligner.align({{}, {3}}).links.empty());
  EXPECT_TRUE(aligner.align({{3}, {}}).links.empty());
  EXPECT_TRUE(std::isfinite(aligner.align({{99999}, {88888}}).log_probability));
  EXPECT_GT(aligner.align(text.pairs[0]).log_probability, aligner.align({text.pairs[0].source, text.pairs[9].target}).log_probability);
}

}  // namespace
}  // namespace starling
