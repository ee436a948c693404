// BLEU and GLEU. A corpus' BLEU needs ten integers: the matching and the total n-grams of each order, and the two lengths. They are
// summed over sentences; all floating-point arithmetic happens once at the end, in the same order as in sacreBLEU.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "metrics/metrics.h"
#include "metrics/metrics_common.h"
#include "metrics/ngrams.h"
#include "text/unicode.h"

namespace starling {

namespace {

constexpr int kOrder = 4;
using Tokens = std::vector<detail::Fingerprint>;

struct NgramCounts {
  std::array<double, kOrder> correct{}, total{};  // whole numbers
  std::int64_t hypothesis_length = 0, reference_length = 0;
};
constexpr std::size_t kBleuWidth = 2 * kOrder + 2;

void append_counts(const NgramCounts& counts, std::vector<double>& rows) {
  rows.insert(rows.end(), counts.correct.begin(), counts.correct.end());
  rows.insert(rows.end(), counts.total.begin(), counts.total.end());
  rows.push_back(static_cast<double>(counts.hypothesis_length));
  rows.push_back(static_cast<double>(counts.reference_length));
}

NgramCounts counts_of_sums(std::span<const double> sums) {
  NgramCounts counts;
  for (int n = 0; n < kOrder; ++n) {
    counts.correct[n] = sums[n];
    counts.total[n] = sums[kOrder + n];
  }
  counts.hypothesis_length = static_cast<std::int64_t>(sums[2 * kOrder]);
  counts.reference_length = static_cast<std::int64_t>(sums[2 * kOrder + 1]);
  return counts;
}

Tokens prepare(const std::string& sentence, const EvaluateOptions& options) {
  const std::string text = options.tokenizer(options.lowercase ? to_lower_utf8(sentence) : sentence);
  Tokens tokens;
  for (const std::string_view word : split_on_space(text)) tokens.push_back(std::hash<std::string_view>{}(word));
  return tokens;
}

// Returns the length nearest to the hypothesis', the shorter of two equally near.
std::int64_t closest_length(std::size_t hypothesis, std::span<const Tokens> references) {
  const auto distance = [&](std::int64_t length) { return std::abs(length - static_cast<std::int64_t>(hypothesis)); };
  std::int64_t best = static_cast<std::int64_t>(references.front().size());
  for (const Tokens& reference : references) {
    const auto length = static_cast<std::int64_t>(reference.size());
    if (distance(length) < distance(best) || (distance(length) == distance(best) && length < best)) best = length;
  }
  return best;
}

NgramCounts count_sentence(const Tokens& hypothesis, std::span<const Tokens> references, detail::ClippedCounts& allowed) {
  NgramCounts counts;
  std::size_t tokens = hypothesis.size();
  for (const Tokens& reference : references) tokens += reference.size();
  allowed.clear(tokens * kOrder);
  for (const Tokens& reference : references) {
    allowed.begin_reference();
    detail::for_each_ngram(reference, kOrder, [&](int, detail::Fingerprint ngram) { allowed.add(ngram); });
  }
  detail::for_each_ngram(hypothesis, kOrder, [&](int n, detail::Fingerprint ngram) {
    counts.total[n - 1] += 1;
    counts.correct[n - 1] += allowed.take(ngram);
  });
  counts.hypothesis_length = static_cast<std::int64_t>(hypothesis.size());
  counts.reference_length = closest_length(hypothesis.size(), references);
  return counts;
}

double brevity_penalty(const NgramCounts& counts) {
  if (counts.hypothesis_length >= counts.reference_length) return 1.0;
  if (counts.hypothesis_length == 0) return 0.0;
  return std::exp(1 - static_cast<double>(counts.reference_length) / static_cast<double>(counts.hypothesis_length));
}

// sacreBLEU's logarithm, which is so negative at zero that the score is zero.
double log_or_abyss(double x) { return x == 0 ? -9999999999.0 : std::log(x); }

// Returns precisions in percent, smoothed by sacreBLEU's "exp", method 3 of Chen and Cherry (2014). An order without any n-grams ends the
// list; its precision stays 0.
std::array<double, kOrder> smoothed_precisions(const NgramCounts& counts) {
  std::array<double, kOrder> percent{};
  double halvings = 1;
  for (int n = 0; n < kOrder && counts.total[n] > 0; ++n) {
    if (counts.correct[n] > 0) {
      percent[n] = 100.0 * counts.correct[n] / counts.total[n];
    } else {
      halvings *= 2;
      percent[n] = 100.0 / (halvings * counts.total[n]);
    }
  }
  return percent;
}

double geometric_mean(const std::array<double, kOrder>& percent) {
  double sum = 0;
  for (const double precision : percent) sum += log_or_abyss(precision);
  return std::exp(sum / kOrder);
}

std::string signature(std::size_t references, const EvaluateOptions& options) {
  return fmt::format("nrefs:{}|case:{}|eff:no|tok:{}|smooth:exp|{}", references, options.lowercase ? "lc" : "mixed",
                     options.tokenizer.name(), detail::version_part());
}

struct Score {
  double score = 0, penalty = 1;
  std::array<double, kOrder> precisions{};  // percent
};

Score score_of(const NgramCounts& counts) {
  Score result{.penalty = brevity_penalty(counts)};
  // Without a single match the score is 0, whatever the smoothing.
  bool any = false;
  for (const double correct : counts.correct) any = any || correct > 0;
  if (!any) return result;
  result.precisions = smoothed_precisions(counts);
  result.score = result.penalty * geometric_mean(result.precisions);
  return result;
}

MetricScore report(const NgramCounts& counts, std::size_t references, const EvaluateOptions& options) {
  const Score score = score_of(counts);
  const auto& p = score.precisions;
  const double hypothesis = static_cast<double>(counts.hypothesis_length), reference = static_cast<double>(counts.reference_length);
  const double ratio = counts.reference_length > 0 ? hypothesis / reference : 0.0;
  std::string verbose = fmt::format("{:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})", p[0], p[1], p[2],
                                    p[3], score.penalty, ratio, counts.hypothesis_length, counts.reference_length);
  return {"BLEU", score.score, signature(references, options), std::move(verbose), ratio};
}

double gleu(const Tokens& hypothesis, const Tokens& reference, detail::ClippedCounts& allowed) {
  allowed.clear((hypothesis.size() + reference.size()) * kOrder);
  allowed.begin_reference();
  std::int64_t matches = 0, in_hypothesis = 0, in_reference = 0;
  detail::for_each_ngram(reference, kOrder, [&](int, detail::Fingerprint ngram) {
    allowed.add(ngram);
    ++in_reference;
  });
  detail::for_each_ngram(hypothesis, kOrder, [&](int, detail::Fingerprint ngram) {
    matches += allowed.take(ngram);
    ++in_hypothesis;
  });
  const std::int64_t larger = std::max(in_hypothesis, in_reference);
  return larger == 0 ? 0.0 : static_cast<double>(matches) / static_cast<double>(larger);
}

}  // namespace

CountedMetric detail::count_bleu(Sentences hypotheses, const ReferenceLists& references, const EvaluateOptions& options) {
  check_corpus(hypotheses, references);
  CountedMetric counted{.width = kBleuWidth};
  ClippedCounts allowed;
  std::vector<Tokens> reference_tokens(references.size());
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    for (std::size_t r = 0; r < references.size(); ++r) reference_tokens[r] = prepare(references[r][i], options);
    append_counts(count_sentence(prepare(hypotheses[i], options), reference_tokens, allowed), counted.counts);
  }
  counted.score = [](std::span<const double> sums) { return score_of(counts_of_sums(sums)).score; };
  counted.corpus = report(counts_of_sums(counted.sums()), references.size(), options);
  return counted;
}

// Stores two numbers per sentence, its best GLEU and 1, so that the mean is a function of sums, as every other score is.
CountedMetric detail::count_gleu(Sentences hypotheses, const ReferenceLists& references, const EvaluateOptions& options) {
  check_corpus(hypotheses, references);
  CountedMetric counted{.width = 2};
  ClippedCounts allowed;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const Tokens hypothesis = prepare(hypotheses[i], options);
    double best = 0;
    for (const Sentences& list : references) best = std::max(best, gleu(hypothesis, prepare(list[i], options), allowed));
    counted.counts.insert(counted.counts.end(), {best, 1.0});
  }
  counted.score = [](std::span<const double> sums) { return 100 * sums[0] / sums[1]; };
  counted.corpus = {"GLEU", counted.score(counted.sums()),
                    fmt::format("nrefs:{}|case:{}|tok:{}|{}", references.size(), options.lowercase ? "lc" : "mixed",
                                options.tokenizer.name(), version_part()),
                    ""};
  return counted;
}

double sentence_gleu(std::span<const std::int32_t> hypothesis, std::span<const std::int32_t> reference) {
  detail::ClippedCounts allowed;
  return gleu(Tokens(hypothesis.begin(), hypothesis.end()), Tokens(reference.begin(), reference.end()), allowed);
}

}  // namespace starling
