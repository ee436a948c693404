// Paired tests on counts by sentence; the definitions are in the header.
#include "metrics/significance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace starling {

namespace {

// Random streams of the seed: one for all draws of the bootstrap, one per trial of the randomisation.
constexpr std::uint64_t kDraws = 0xB1E0;
constexpr std::uint64_t kExchanges = std::uint64_t{1} << 63;

// Score differences closer than this, in points, count as equal, because of rounding where counts are not whole numbers.
constexpr double kTie = 1e-9;

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Returns the bounds of the central 95 %: drops a fortieth of the values on either side.
ScoreInterval interval_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t out = values.size() / 40;
  return {values[out], values[values.size() - 1 - out]};
}

// Counts the observation itself as one occurrence, because a randomised test must not claim a probability of 0.
double p_value(std::int64_t as_large, std::size_t trials) { return static_cast<double>(as_large + 1) / static_cast<double>(trials + 1); }

double p_of_resamples(std::span<const double> system, std::span<const double> baseline, double observed) {
  std::vector<double> differences(system.size());
  for (std::size_t r = 0; r < system.size(); ++r) differences[r] = std::abs(system[r] - baseline[r]);
  const double mean = mean_of(differences);
  const auto as_large = [&](double d) { return d - mean >= observed - kTie; };
  return p_value(std::count_if(differences.begin(), differences.end(), as_large), differences.size());
}

// Returns the non-zero rows of system - baseline: only these sentences can change a score.
std::vector<double> differing_rows(const CountedMetric& system, const CountedMetric& baseline) {
  std::vector<double> rows;
  for (std::size_t i = 0; i < system.sentences(); ++i) {
    const auto of_system = system.row(i), of_baseline = baseline.row(i);
    if (std::equal(of_system.begin(), of_system.end(), of_baseline.begin())) continue;
    for (std::size_t k = 0; k < system.width; ++k) rows.push_back(of_system[k] - of_baseline[k]);
  }
  return rows;
}

double p_of_exchanges(const CountedMetric& system, const CountedMetric& baseline, int trials, std::uint64_t seed, const TestWatch& watch) {
  const std::size_t width = system.width;
  const std::vector<double> rows = differing_rows(system, baseline), of_system = system.sums(), of_baseline = baseline.sums();
  const double observed = std::abs(system.corpus.score - baseline.corpus.score);
  std::vector<double> moved(width), first(width), second(width);
  std::int64_t as_large = 0;
  for (int t = 0; t < trials; ++t) {
    if (watch) watch(static_cast<double>(t) / trials);
    Random random(seed, kExchanges + static_cast<std::uint64_t>(t));
    std::fill(moved.begin(), moved.end(), 0.0);
    std::uint64_t bits = 0;
    for (std::size_t row = 0; row * width < rows.size(); ++row, bits >>= 1) {
      if (row % 64 == 0) bits = random.next();
      const double* from = rows.data() + row * width;
      if (bits & 1) std::transform(moved.begin(), moved.end(), from, moved.begin(), std::plus<>());
    }
    for (std::size_t k = 0; k < width; ++k) {
      first[k] = of_system[k] - moved[k];
      second[k] = of_baseline[k] + moved[k];
    }
    as_large += std::abs(system.score(first) - system.score(second)) >= observed - kTie;
  }
  return p_value(as_large, static_cast<std::size_t>(trials));
}

// Maps the progress of one system's test to that of a test of several systems.
TestWatch part_of(const TestWatch& watch, std::size_t part, std::size_t parts) {
  if (!watch) return {};
  return [=](double share) { watch((static_cast<double>(part) + share) / static_cast<double>(parts)); };
}

void check_pair(const CountedMetric& a, const CountedMetric& b, int trials) {
  CHECK(trials > 0, "{} trials", trials);
  CHECK(a.width == b.width && a.counts.size() == b.counts.size(), "systems of {} and {} sentences", a.sentences(), b.sentences());
}

}  // namespace

std::vector<double> bootstrap_scores(const CountedMetric& system, int resamples, std::uint64_t seed, const TestWatch& watch) {
  Random random(seed, kDraws);
  std::vector<double> scores(static_cast<std::size_t>(resamples)), sums(system.width);
  for (std::size_t r = 0; r < scores.size(); ++r) {
    if (watch) watch(static_cast<double>(r) / static_cast<double>(scores.size()));
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t i = 0; i < system.sentences(); ++i) {
      const auto row = system.row(random.below(system.sentences()));
      std::transform(sums.begin(), sums.end(), row.begin(), sums.begin(), std::plus<>());
    }
    scores[r] = system.score(sums);
  }
  return scores;
}

std::vector<TestedScore> paired_bootstrap(std::span<const CountedMetric> systems, int resamples, std::uint64_t seed,
                                          const TestWatch& watch) {
  std::vector<TestedScore> tested;
  std::vector<double> baseline;
  for (const CountedMetric& system : systems) {
    check_pair(system, systems.front(), resamples);
    std::vector<double> scores = bootstrap_scores(system, resamples, seed, part_of(watch, tested.size(), systems.size()));
    TestedScore t{.score = system.corpus.score, .mean = mean_of(scores)};
    if (!tested.empty()) t.p_value = p_of_resamples(scores, baseline, std::abs(t.score - tested.front().score));
    if (tested.empty()) baseline = scores;
    const ScoreInterval interval = interval_of(std::move(scores));
    t.ci = (interval.high - interval.low) / 2;
    tested.push_back(t);
  }
  return tested;
}

std::vector<TestedScore> paired_randomization(std::span<const CountedMetric> systems, int trials, std::uint64_t seed,
                                              const TestWatch& watch) {
  std::vector<TestedScore> tested;
  for (const CountedMetric& system : systems) {
    check_pair(system, systems.front(), trials);
    tested.push_back({.score = system.corpus.score});
    const std::size_t pair = tested.size() - 1;
    if (pair > 0)
      tested.back().p_value = p_of_exchanges(system, systems.front(), trials, seed, part_of(watch, pair - 1, systems.size() - 1));
  }
  return tested;
}

ScoreInterval difference_interval(const CountedMetric& a, const CountedMetric& b, int resamples, std::uint64_t seed) {
  check_pair(a, b, resamples);
  std::vector<double> of_a = bootstrap_scores(a, resamples, seed);
  const std::vector<double> of_b = bootstrap_scores(b, resamples, seed);
  std::transform(of_a.begin(), of_a.end(), of_b.begin(), of_a.begin(), std::minus<>());
  return interval_of(std::move(of_a));
}

}  // namespace starling
