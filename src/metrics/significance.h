// Tests whether the difference between two systems is more than chance: paired bootstrap resampling (Koehn, 2004) and paired approximate
// randomisation (Riezler and Maxwell, 2005), with sacreBLEU's statistics and intervals. Both need thousands of scores, each of which is a
// function of sums of counts by sentence. Random draws come from Philox by seed and are the same for every system and metric, which is what
// "paired" means. docs/reference/metrics.md says where this differs from sacreBLEU.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "metrics/metrics.h"

namespace starling {

struct ScoreInterval {
  double low = 0, high = 0;
};

/// The result of a test for one system and one metric.
struct TestedScore {
  double score = 0;               // of the original sentences
  std::optional<double> p_value;  // against the baseline, which has none
  std::optional<double> mean;     // of the scores of the resampled corpora; bootstrap only
  std::optional<double> ci;       // half-width of the interval that contains 95 % of them; bootstrap only
};

/// Called during a test with the share that is done, 0 to 1. May be empty.
using TestWatch = std::function<void(double share)>;

/// Returns the scores of `resamples` corpora (at least 1), each of as many sentences as the original, drawn with replacement. Equal seeds
/// and sentence counts draw equal sentences.
std::vector<double> bootstrap_scores(const CountedMetric& system, int resamples, std::uint64_t seed, const TestWatch& watch = {});

/// Tests each system (one metric, the same sentences in the same order) against the first. With d the difference of two scores, p is
/// (1 + the resampled corpora where |d| - mean |d| is at least the true |d|) / (1 + resamples).
std::vector<TestedScore> paired_bootstrap(std::span<const CountedMetric> systems, int resamples, std::uint64_t seed,
                                          const TestWatch& watch = {});

/// The same by randomisation: each trial exchanges the two translations of a sentence with probability 1/2; p is (1 + the trials whose |d|
/// is at least the true one) / (1 + trials).
std::vector<TestedScore> paired_randomization(std::span<const CountedMetric> systems, int trials, std::uint64_t seed,
                                              const TestWatch& watch = {});

/// Returns the interval that contains the score of `a` minus that of `b` in 95 % of the resampled corpora.
ScoreInterval difference_interval(const CountedMetric& a, const CountedMetric& b, int resamples = 1000, std::uint64_t seed = 12345);

}  // namespace starling
