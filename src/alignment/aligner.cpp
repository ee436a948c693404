#include "alignment/aligner.h"

#include <cmath>
#include <map>

#include "alignment/diagonal.h"
#include "base/start_threads.h"

namespace starling {
namespace {

constexpr size_t kBlock = 1000;             // sentence pairs that a thread takes at a time
constexpr size_t kPiece = size_t{1} << 20;  // pairs of words of a sentence pair that the HMM takes at a time

// The model of the iteration that is `index`th, from 0, of those that learn.
AlignmentModel model_of(const AlignerOptions& options, int index) {
  return options.model == AlignmentModel::hmm && index < (options.iterations - 1) / 2 ? AlignmentModel::diagonal : options.model;
}

}  // namespace

// Sums of a block of the text. Those of all blocks are added in order, whichever thread made them.
struct Aligner::Pass {
  double log_likelihood = 0, null = 0, feature = 0;
  int64_t words = 0;
  JumpCounts jumps;
};

// A target word, the `j`th from 0, its posteriors by the null word and each source word, the places of these pairs in the table, and its
// probability.
struct Aligner::Word {
  int64_t j;
  std::span<const double> posteriors;
  std::span<const size_t> places;
  double probability;
};

Aligner::Aligner(std::span<const NumberedPair> text, const AlignerOptions& options,
                 const std::function<void(const AlignerStatistics&)>& told)
    : options_(options), table_(text), tension_(options.tension) {
  for (int i = 0; i + 1 < options.iterations; ++i) {
    model_ = model_of(options, i);
    AlignerStatistics s = expect(text, true);
    if (model_ == AlignmentModel::diagonal && options.optimize_tension && i > 0) optimize_tension(text, s.feature);
    table_.maximize(options.alpha);
    s.tension = tension_;
    if (told) told(s);
  }
  model_ = options.model;
  table_.finish(options.slips);
}

Aligner::Aligner(TranslationTable table, double tension, const JumpDistribution& jumps, const AlignerOptions& options)
    : options_(options), model_(options.model), table_(std::move(table)), tension_(tension), jumps_(jumps) {}

AlignerStatistics Aligner::statistics(std::span<const NumberedPair> text) {
  AlignerStatistics s = expect(text, false);
  s.tension = tension_;
  return s;
}

template <class Done>
void Aligner::visit(const NumberedPair& pair, JumpCounts* counts, Done done) const {
  if (model_ == AlignmentModel::hmm)
    visit_chain(pair, counts, done);
  else
    visit_alone(pair, done);
}

template <class Done>
void Aligner::visit_alone(const NumberedPair& pair, Done done) const {
  const auto n = static_cast<int64_t>(pair.source.size()), m = static_cast<int64_t>(pair.target.size());
  const bool diagonal = model_ == AlignmentModel::diagonal;
  const double null = !options_.null_word ? 0 : diagonal ? options_.null_probability : 1 / static_cast<double>(n + 1);
  std::vector<double> joint(pair.source.size() + 1);
  std::vector<size_t> places(joint.size());
  for (int64_t j = 0; j < m; ++j) {
    const uint32_t target = pair.target[static_cast<size_t>(j)];
    double sum = joint[0] = null * table_.probability(kNullWord, target, places[0]);
    const double z = diagonal && n > 0 ? diagonal_sum(j + 1, n, m, tension_) / (1 - null) : 0;
    for (int64_t i = 1; i <= n; ++i) {
      const auto at = static_cast<size_t>(i);
      const double prior = diagonal ? std::exp(tension_ * diagonal_feature(i, j + 1, n, m)) / z : (1 - null) / static_cast<double>(n);
      joint[at] = prior * table_.probability(pair.source[at - 1], target, places[at]);
      sum += joint[at];
    }
    for (double& p : joint) p /= sum;
    done(Word{j, joint, places, sum});
  }
}

template <class Done>
void Aligner::visit_chain(const NumberedPair& pair, JumpCounts* counts, Done done) const {
  const size_t states = pair.source.size() + 1, rows = std::min(pair.target.size(), std::max<size_t>(kPiece / states, 1));
  HmmLattice lattice(jumps_, options_.null_word ? options_.hmm_null_probability : 0, pair.source.size());
  std::vector<double> emissions;
  std::vector<size_t> places;
  for (size_t begin = 0; begin < pair.target.size(); begin += rows) {
    const size_t end = std::min(begin + rows, pair.target.size());
    emissions.clear();
    places.clear();
    for (size_t j = begin; j < end; ++j)
      for (size_t i = 0; i < states; ++i)
        emissions.push_back(table_.probability(i > 0 ? pair.source[i - 1] : kNullWord, pair.target[j], places.emplace_back()));
    lattice.take(emissions, counts);
    for (size_t j = begin; j < end; ++j)
      done(Word{static_cast<int64_t>(j), lattice.posteriors(j - begin), std::span(places).subspan((j - begin) * states, states),
                lattice.probability(j - begin)});
  }
}

AlignerStatistics Aligner::expect(std::span<const NumberedPair> text, bool count) {
  if (count) table_.clear_counts();
  std::vector<Pass> blocks((text.size() + kBlock - 1) / kBlock);
  std::atomic<size_t> next{0};
  work_side_by_side(static_cast<size_t>(std::max(options_.threads, 1)), [&](size_t) {
    for (size_t b; (b = next++) < blocks.size();) {
      Pass& pass = blocks[b];
      for (const NumberedPair& pair : text.subspan(b * kBlock, std::min(kBlock, text.size() - b * kBlock))) {
        const auto n = static_cast<int64_t>(pair.source.size()), m = static_cast<int64_t>(pair.target.size());
        visit(pair, count ? &pass.jumps : nullptr, [&](const Word& word) {
          pass.log_likelihood += std::log(word.probability);
          pass.null += word.posteriors[0];
          ++pass.words;
          for (size_t i = 0; count && i < word.places.size(); ++i) table_.count(word.places[i], word.posteriors[i]);
          for (int64_t i = 1; model_ != AlignmentModel::hmm && i <= n; ++i)
            pass.feature += word.posteriors[static_cast<size_t>(i)] * diagonal_feature(i, options_.slips ? word.j : word.j + 1, n, m);
        });
      }
    }
  });
  AlignerStatistics s;
  s.model = model_;
  JumpCounts jumps;
  int64_t words = 0;
  for (const Pass& pass : blocks) {
    s.log_likelihood += pass.log_likelihood;
    s.null_share += pass.null;
    s.feature += pass.feature;
    words += pass.words;
    jumps.add(pass.jumps);
  }
  if (count && model_ == AlignmentModel::hmm) jumps_.maximize(jumps);
  const double all = static_cast<double>(std::max<int64_t>(words, 1));
  s.bits = -s.log_likelihood / std::log(2) / all;
  s.null_share /= all;
  s.feature /= all;
  return s;
}

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
  visit(pair, nullptr, [&](const Word& word) {
    const auto best = std::max_element(word.posteriors.begin(), word.posteriors.end()) - word.posteriors.begin();
    if (best > 0) aligned.links.emplace_back(static_cast<int32_t>(best - 1), static_cast<int32_t>(word.j));
    aligned.log_probability += std::log(word.probability) / static_cast<double>(pair.target.size());
  });
  return aligned;
}

double Aligner::log_translation(uint32_t source, uint32_t target) const {
  size_t place = 0;
  return std::log(table_.probability(source, target, place));
}

}  // namespace starling
