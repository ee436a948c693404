#include "alignment/aligner.h"

#include <cmath>
#include <map>

#include "alignment/diagonal.h"
#include "base/error.h"
#include "base/start_threads.h"

namespace starling {
namespace {

constexpr double kFirst = 1e-9;        // every t in the first iteration
constexpr double kLeast = 1e-30;       // of a probability that is learnt; a float holds it
constexpr double kUnit = 4294967296.;  // of a count
constexpr size_t kBlock = 1000;        // sentence pairs that a thread takes at a time

// The logarithmic derivative of the gamma function, to 1e-12.
double digamma(double x) {
  double result = 0;
  for (; x < 10; ++x) result -= 1 / x;
  const double y = 1 / (x * x);
  return result + std::log(x) - 0.5 / x - y * (1. / 12 - y * (1. / 120 - y * (1. / 252 - y * (1. / 240 - y / 132))));
}

}  // namespace

// Sums of a block of the text.
struct Aligner::Pass {
  double log_likelihood = 0, null = 0, feature = 0;
  int64_t words = 0;
};

Aligner::Aligner(std::span<const NumberedPair> text, const AlignerOptions& options,
                 const std::function<void(const AlignerStatistics&)>& told)
    : options_(options), pairs_(text), counts_(pairs_.size()), tension_(options.tension) {
  for (int i = 1; i < options.iterations; ++i) {
    AlignerStatistics s = expect(text, true);
    if (options.diagonal && options.optimize_tension && i > 1) optimize_tension(text, s.feature);
    maximize();
    s.tension = tension_;
    if (told) told(s);
  }
  std::vector<std::atomic<uint64_t>>().swap(counts_);
}

Aligner::Aligner(WordPairs pairs, std::vector<float> probabilities, double tension, const AlignerOptions& options)
    : options_(options), pairs_(std::move(pairs)), probabilities_(std::move(probabilities)), tension_(tension) {
  CHECK(probabilities_.size() == pairs_.size(), "{} probabilities of {} pairs", probabilities_.size(), pairs_.size());
}

AlignerStatistics Aligner::statistics(std::span<const NumberedPair> text) {
  AlignerStatistics s = expect(text, false);
  s.tension = tension_;
  return s;
}

template <class Each, class Done>
void Aligner::visit(const NumberedPair& pair, Each each, Done done) const {
  const auto n = static_cast<int64_t>(pair.source.size()), m = static_cast<int64_t>(pair.target.size());
  const auto probability = [&](uint32_t source, uint32_t target, size_t& place) {
    place = pairs_.find(source, target);
    return probabilities_.empty() || place == WordPairs::kNone ? kFirst : static_cast<double>(probabilities_[place]);
  };
  const double null = !options_.null_word ? 0 : options_.diagonal ? options_.null_probability : 1 / static_cast<double>(n + 1);
  for (int64_t j = 0; j < m; ++j) {
    const uint32_t target = pair.target[static_cast<size_t>(j)];
    double sum = 0;
    size_t place = 0;
    if (options_.null_word) {
      const double p = null * probability(kNullWord, target, place);
      sum += p;
      each(j, int64_t{0}, p, place);
    }
    const double z = options_.diagonal && n > 0 ? diagonal_sum(j + 1, n, m, tension_) / (1 - null) : 0;
    for (int64_t i = 1; i <= n; ++i) {
      const double prior =
          options_.diagonal ? std::exp(tension_ * diagonal_feature(i, j + 1, n, m)) / z : (1 - null) / static_cast<double>(n);
      const double p = prior * probability(pair.source[static_cast<size_t>(i - 1)], target, place);
      sum += p;
      each(j, i, p, place);
    }
    done(j, sum);
  }
}

AlignerStatistics Aligner::expect(std::span<const NumberedPair> text, bool count) {
  for (auto& c : counts_) c.store(0, std::memory_order_relaxed);
  std::vector<Pass> blocks((text.size() + kBlock - 1) / kBlock);
  std::atomic<size_t> next{0};
  work_side_by_side(static_cast<size_t>(std::max(options_.threads, 1)), [&](size_t) {
    std::vector<std::pair<double, size_t>> joint;  // of one target word
    for (size_t b; (b = next++) < blocks.size();) {
      Pass& pass = blocks[b];
      for (const NumberedPair& pair : text.subspan(b * kBlock, std::min(kBlock, text.size() - b * kBlock))) {
        const auto n = static_cast<int64_t>(pair.source.size()), m = static_cast<int64_t>(pair.target.size());
        visit(
            pair, [&](int64_t, int64_t, double p, size_t place) { joint.emplace_back(p, place); },
            [&](int64_t j, double sum) {
              pass.log_likelihood += std::log(sum);
              ++pass.words;
              const auto first = static_cast<int64_t>(options_.null_word ? 0 : 1);
              for (size_t k = 0; count && k < joint.size(); ++k) {
                const double p = joint[k].first / sum;
                const int64_t i = first + static_cast<int64_t>(k);
                if (joint[k].second != WordPairs::kNone)
                  counts_[joint[k].second].fetch_add(static_cast<uint64_t>(std::llround(p * kUnit)), std::memory_order_relaxed);
                if (i == 0)
                  pass.null += p;
                else
                  pass.feature += p * diagonal_feature(i, options_.slips ? j : j + 1, n, m);
              }
              joint.clear();
            });
      }
    }
  });
  AlignerStatistics s;
  int64_t words = 0;
  for (const Pass& pass : blocks) {
    s.log_likelihood += pass.log_likelihood;
    s.null_share += pass.null;
    s.feature += pass.feature;
    words += pass.words;
  }
  const double all = static_cast<double>(std::max<int64_t>(words, 1));
  s.bits = -s.log_likelihood / std::log(2) / all;
  s.null_share /= all;
  s.feature /= all;
  return s;
}

void Aligner::maximize() {
  probabilities_.resize(pairs_.size());
  for (uint32_t e = 0; e < pairs_.sources(); ++e) {
    double total = 0;
    const auto counted = [&](size_t place) {
      return static_cast<double>(counts_[place].load(std::memory_order_relaxed)) / kUnit + options_.alpha;
    };
    for (size_t k = pairs_.begin(e); k < pairs_.end(e); ++k) total += counted(k);
    if (total == 0) total = 1;
    const double normal = options_.alpha > 0 ? digamma(total) : 0;
    for (size_t k = pairs_.begin(e); k < pairs_.end(e); ++k)
      probabilities_[k] =
          static_cast<float>(std::max(kLeast, options_.alpha > 0 ? std::exp(digamma(counted(k)) - normal) : counted(k) / total));
  }
}

// Eight steps along the gradient of the likelihood, which is the difference of the posterior and the prior mean of h.
void Aligner::optimize_tension(std::span<const NumberedPair> text, double feature) {
  constexpr double kRate = 20, kLeast = 0.1, kMost = 14;
  std::map<std::pair<int64_t, int64_t>, int64_t> sizes;  // of target and source
  int64_t words = 0;
  for (const NumberedPair& pair : text) {
    words += std::ssize(pair.target);
    if (!pair.source.empty()) ++sizes[{std::ssize(pair.target), std::ssize(pair.source)}];
  }
  for (int step = 0; step < 8; ++step) {
    double mean = 0;
    for (const auto& [size, count] : sizes)
      for (int64_t j = 1; j <= size.first; ++j)
        mean += static_cast<double>(count) * diagonal_expectation(j, size.second, size.first, tension_, options_.slips);
    tension_ = std::clamp(tension_ + kRate * (feature - mean / static_cast<double>(std::max<int64_t>(words, 1))), kLeast, kMost);
  }
}

AlignedPair Aligner::align(const NumberedPair& pair) const {
  AlignedPair aligned;
  double most = 0;
  int64_t best = 0;
  visit(
      pair,
      [&](int64_t, int64_t i, double p, size_t) {
        if (p > most) {
          most = p;
          best = i;
        }
      },
      [&](int64_t j, double sum) {
        if (best > 0) aligned.links.emplace_back(static_cast<int32_t>(best - 1), static_cast<int32_t>(j));
        aligned.log_probability += std::log(sum) / static_cast<double>(pair.target.size());
        most = 0;
        best = 0;
      });
  return aligned;
}

double Aligner::log_translation(uint32_t source, uint32_t target) const {
  const size_t place = pairs_.find(source, target);
  return std::log(place == WordPairs::kNone || probabilities_.empty() ? kFirst : static_cast<double>(probabilities_[place]));
}

}  // namespace starling
