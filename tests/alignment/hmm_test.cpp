// The HMM against sums over all alignments, one by one, and one step of its training against the same sums.
#include "alignment/hmm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "alignment/aligner.h"

namespace starling {
namespace {

constexpr double kNull = 0.2;

// Sums over all alignments of one pair.
struct Enumerated {
  double likelihood = 0;
  std::vector<std::vector<double>> posteriors;              // by target word and source word, 0: the null word
  std::array<std::map<int64_t, double>, 2> jumps, chances;  // by width; [1]: from before the sentence
};

int64_t clamped(int64_t width) { return std::max<int64_t>(-50, std::min<int64_t>(50, width)); }

// `weight(kind, width)`, rows of t(f|null), t(f|e_1), and so on.
template <class Weight>
Enumerated enumerate(const std::vector<std::vector<double>>& emissions, Weight weight) {
  const size_t m = emissions.size(), states = emissions[0].size();
  const auto n = static_cast<int64_t>(states) - 1;
  std::vector<double> sum_from(states);  // of the weights of all jumps from a position
  for (int64_t from = 0; from <= n; ++from)
    for (int64_t to = 1; to <= n; ++to) sum_from[static_cast<size_t>(from)] += weight(from == 0, clamped(to - from));
  Enumerated e;
  e.posteriors.assign(m, std::vector<double>(states));
  std::vector<size_t> links(m);
  for (bool more = true; more;) {
    double p = 1;
    int64_t at = 0;
    std::vector<std::tuple<int64_t, int64_t, double>> made;  // from, to, the share that is not of the uniform part
    for (size_t j = 0; j < m; ++j) {
      const auto to = static_cast<int64_t>(links[j]);
      p *= emissions[j][links[j]];
      if (to == 0) {
        p *= kNull;
        continue;
      }
      const double by_width = 0.8 * weight(at == 0, clamped(to - at)) / sum_from[static_cast<size_t>(at)],
                   uniform = 0.2 / static_cast<double>(n);
      p *= (1 - kNull) * (by_width + uniform);
      made.emplace_back(at, to, by_width / (by_width + uniform));
      at = to;
    }
    e.likelihood += p;
    for (size_t j = 0; j < m; ++j) e.posteriors[j][links[j]] += p;
    for (const auto& [from, to, share] : made) {
      e.jumps[from == 0][clamped(to - from)] += p * share;
      for (int64_t other = 1; other <= n; ++other)
        e.chances[from == 0][clamped(other - from)] += p * share / sum_from[static_cast<size_t>(from)];
    }
    more = false;
    for (size_t j = 0; j < m && !more; ++j) {
      more = ++links[j] < states;
      if (!more) links[j] = 0;
    }
  }
  for (auto& row : e.posteriors)
    for (double& x : row) x /= e.likelihood;
  for (auto* sums : {&e.jumps, &e.chances})
    for (auto& kind : *sums)
      for (auto& [width, x] : kind) x /= e.likelihood;
  return e;
}

std::vector<double> flat(const std::vector<std::vector<double>>& rows) {
  std::vector<double> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

class Random {
 public:
  double operator()(double least, double most) { return std::uniform_real_distribution(least, most)(engine_); }
  JumpDistribution jumps() {
    JumpDistribution j;
    for (JumpWidths& w : j.weights)
      for (double& x : w) x = (*this)(0.01, 1);
    return j;
  }
  std::vector<std::vector<double>> emissions(size_t n, size_t m) {
    std::vector<std::vector<double>> rows(m, std::vector<double>(n + 1));
    for (auto& row : rows)
      for (double& x : row) x = std::pow(10., (*this)(-6, 0));
    return rows;
  }

 private:
  std::mt19937 engine_{7};
};

TEST(HmmLattice, SumsOverAllAlignments) {
  Random random;
  for (const auto& [n, m] : {std::pair<size_t, size_t>{1, 1}, {1, 4}, {2, 6}, {3, 5}, {5, 4}, {4, 1}, {120, 2}}) {
    const JumpDistribution jumps = random.jumps();
    const auto emissions = random.emissions(n, m);
    const Enumerated e =
        enumerate(emissions, [&](bool kind, int64_t width) { return jumps.weights[kind][static_cast<size_t>(width + 50)]; });
    HmmLattice lattice(jumps, kNull, n);
    JumpCounts counts;
    lattice.take(flat(emissions), &counts);
    double likelihood = 1;
    for (size_t j = 0; j < m; ++j) {
      likelihood *= lattice.probability(j);
      for (size_t i = 0; i <= n; ++i)
        EXPECT_NEAR(lattice.posteriors(j)[i], e.posteriors[j][i], 1e-11) << n << " " << m << " " << i << "," << j;
    }
    EXPECT_NEAR(likelihood / e.likelihood, 1, 1e-11);
    for (size_t kind = 0; kind < 2; ++kind)
      for (int64_t width = -50; width <= 50; ++width) {
        const auto expected = [&](const std::map<int64_t, double>& sums) { return sums.contains(width) ? sums.at(width) : 0; };
        const auto place = static_cast<size_t>(width + 50);
        EXPECT_NEAR(counts.jumps[kind][place], expected(e.jumps[kind]), 1e-11) << n << " " << m << ", width " << width;
        EXPECT_NEAR(counts.chances[kind][place], expected(e.chances[kind]), 1e-9) << n << " " << m << ", width " << width;
      }
  }
}

TEST(HmmLattice, InPiecesHasTheSameProbabilitiesAndKnowsAllBefore) {
  Random random;
  const JumpDistribution jumps = random.jumps();
  const auto emissions = random.emissions(70, 9);
  HmmLattice whole(jumps, kNull, 70), pieces(jumps, kNull, 70);
  whole.take(flat(emissions), nullptr);
  for (size_t begin = 0; begin < 9; begin += 3) {
    pieces.take(flat({emissions.begin() + static_cast<ptrdiff_t>(begin), emissions.begin() + static_cast<ptrdiff_t>(begin + 3)}), nullptr);
    for (size_t j = 0; j < 3; ++j) EXPECT_NEAR(pieces.probability(j) / whole.probability(begin + j), 1, 1e-12);
  }
  for (size_t j = 0; j < 3; ++j)
    for (size_t i = 0; i <= 70; ++i) EXPECT_NEAR(pieces.posteriors(j)[i], whole.posteriors(6 + j)[i], 1e-12);
}

TEST(HmmLattice, DoesNotUnderflow) {
  const JumpDistribution jumps;
  for (const size_t n : {0, 1, 300}) {
    HmmLattice lattice(jumps, kNull, n);
    lattice.take(std::vector<double>(1000 * (n + 1), 1e-30), nullptr);
    for (size_t j = 0; j < 1000; ++j) {
      const std::span<const double> p = lattice.posteriors(j);
      EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.), 1, 1e-9);
      EXPECT_NEAR(lattice.probability(j), n > 0 ? 1e-30 : kNull * 1e-30, 1e-40);
    }
  }
}

// Four pairs of words 1 to 5 and 1 to 6.
std::vector<NumberedPair> small_text() {
  return {{{1, 2, 3}, {2, 1, 3}}, {{1, 4}, {4, 1, 5}}, {{2, 3, 3, 5}, {3, 2}}, {{4, 1}, {6, 4, 1, 1}}};
}

AlignerOptions plain(AlignmentModel model, int iterations) {
  AlignerOptions o;
  o.model = model;
  o.iterations = iterations;
  o.alpha = 0;
  o.optimize_tension = false;
  return o;
}

TEST(HmmTraining, OneStepIsThatOfTheSums) {
  const std::vector<NumberedPair> text = small_text();
  const Aligner before(text, plain(AlignmentModel::diagonal, 2));  // what the first of three iterations learns
  std::map<std::pair<uint32_t, uint32_t>, double> counts;
  std::array<std::map<int64_t, double>, 2> jumps, chances;
  double log_likelihood = 0;
  for (const NumberedPair& pair : text) {
    std::vector<std::vector<double>> emissions;
    for (const uint32_t f : pair.target) {
      emissions.emplace_back(1, std::exp(before.log_translation(kNullWord, f)));
      for (const uint32_t e : pair.source) emissions.back().push_back(std::exp(before.log_translation(e, f)));
    }
    const Enumerated sums = enumerate(emissions, [](bool, int64_t) { return 1.; });
    log_likelihood += std::log(sums.likelihood);
    for (size_t j = 0; j < pair.target.size(); ++j)
      for (size_t i = 0; i <= pair.source.size(); ++i)
        counts[{i > 0 ? pair.source[i - 1] : kNullWord, pair.target[j]}] += sums.posteriors[j][i];
    for (size_t kind = 0; kind < 2; ++kind) {
      for (const auto& [width, x] : sums.jumps[kind]) jumps[kind][width] += x;
      for (const auto& [width, x] : sums.chances[kind]) chances[kind][width] += x;
    }
  }
  std::vector<AlignerStatistics> told;
  const Aligner after(text, plain(AlignmentModel::hmm, 3), [&](const AlignerStatistics& s) { told.push_back(s); });
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].model, AlignmentModel::diagonal);
  EXPECT_EQ(told[1].model, AlignmentModel::hmm);
  EXPECT_NEAR(told[1].log_likelihood, log_likelihood, 1e-6);
  for (const auto& [pair, count] : counts) {
    double total = 0;
    for (const auto& [other, c] : counts)
      if (other.first == pair.first) total += c;
    EXPECT_NEAR(std::exp(after.log_translation(pair.first, pair.second)), count / total, 1e-6) << pair.first << " " << pair.second;
  }
  for (size_t kind = 0; kind < 2; ++kind) {
    double most = 0;
    for (const auto& [width, x] : jumps[kind]) most = std::max(most, x / chances[kind].at(width));
    for (const auto& [width, x] : jumps[kind])
      EXPECT_NEAR(after.jumps().weights[kind][jump_place(width)], x / chances[kind].at(width) / most, 1e-6) << "width " << width;
  }
}

TEST(HmmTraining, NeverMakesTheTextLessLikely) {
  std::vector<double> likelihoods;
  const auto keep = [&](const AlignerStatistics& s) {
    if (s.model == AlignmentModel::hmm) likelihoods.push_back(s.log_likelihood);
  };
  const std::vector<NumberedPair> text = small_text();
  keep(Aligner(text, plain(AlignmentModel::hmm, 40), keep).statistics(text));
  ASSERT_EQ(likelihoods.size(), 21u);
  for (size_t i = 1; i < likelihoods.size(); ++i) EXPECT_GE(likelihoods[i], likelihoods[i - 1] - 1e-5) << i;
  EXPECT_GT(likelihoods.back(), likelihoods.front() + 3);
}

// Every translation is in the opposite order, which the diagonal model cannot learn; words that come twice show it.
TEST(HmmLinks, GoByTheJumps) {
  Random random;
  std::vector<NumberedPair> text;
  for (int i = 0; i < 300; ++i) {
    NumberedPair pair;
    for (int k = 4 + i % 5; k > 0; --k) pair.source.push_back(static_cast<uint32_t>(random(1, 31)));
    for (size_t k = pair.source.size(); k > 0; --k) pair.target.push_back(100 + pair.source[k - 1]);
    text.push_back(pair);
  }
  const Aligner aligner(text, {});
  const NumberedPair twice{{3, 5, 8, 3}, {103, 108, 105, 103}};
  EXPECT_EQ(aligner.align(twice).links, (Links{{3, 0}, {2, 1}, {1, 2}, {0, 3}}));
  AlignerOptions diagonal;
  diagonal.model = AlignmentModel::diagonal;
  EXPECT_EQ(Aligner(text, diagonal).align(twice).links, (Links{{0, 0}, {2, 1}, {1, 2}, {3, 3}}));
  const JumpWidths& w = aligner.jumps().weights[0];
  EXPECT_EQ(std::max_element(w.begin(), w.end()) - w.begin(), 50 - 1);
}

TEST(HmmLinks, StrangeAndLongSentences) {
  std::vector<NumberedPair> text = small_text();
  text.push_back({{}, {1, 2}});
  text.push_back({{1}, {}});
  text.push_back({WordIds(1000, 2), WordIds(1000, 3)});
  text.push_back({{7}, {7}});
  const Aligner aligner(text, {});
  const auto score = [&](const NumberedPair& pair) { return aligner.align(pair).log_probability; };
  EXPECT_TRUE(aligner.align({{}, {3}}).links.empty());
  EXPECT_TRUE(aligner.align({{3}, {}}).links.empty());
  EXPECT_TRUE(std::isfinite(score({{}, {3}})));
  EXPECT_EQ(score({{3}, {}}), 0);
  EXPECT_TRUE(std::isfinite(score({{99999}, {88888}})));
  EXPECT_TRUE(std::isfinite(score({WordIds(1000, 2), WordIds(1000, 3)})));
  EXPECT_EQ(aligner.align({{7}, {7}}).links, (Links{{0, 0}}));
  WordIds order(2500);  // three pieces
  std::iota(order.begin(), order.end(), 1u);
  std::vector<NumberedPair> known;
  for (uint32_t i = 1; i <= 2500; i += 5) known.push_back({{i, i + 1, i + 2, i + 3, i + 4}, {i, i + 1, i + 2, i + 3, i + 4}});
  const AlignedPair aligned = Aligner(known, {}).align({order, order});
  EXPECT_TRUE(std::isfinite(aligned.log_probability));
  ASSERT_EQ(aligned.links.size(), 2500u);
  for (int32_t i = 0; i < 2500; ++i) EXPECT_EQ(aligned.links[static_cast<size_t>(i)], std::pair(i, i));
}

}  // namespace
}  // namespace starling
