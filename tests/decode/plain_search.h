// Beam search as plain as possible, on models with random predictions: what the search of the program is compared with.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/random.h"
#include "decode/beam_search.h"
#include "tests/decode/fake_model.h"

namespace starling {

using Prefix = FakeModel::Prefix;
using Sources = std::vector<std::vector<int32_t>>;
using Sequences = std::vector<std::vector<int32_t>>;  // of SearchOptions::suppress_ids

constexpr int32_t kEnd = 2;

inline double length_penalty(double alpha, size_t length) { return std::pow((5.0 + static_cast<double>(length)) / 6.0, alpha); }

// A stream of numbers that belongs to a sentence and a prefix.
inline Random random_of(uint64_t seed, int32_t sentence, const Prefix& prefix) {
  uint64_t stream = static_cast<uint64_t>(sentence) + 1;
  for (int32_t t : prefix) stream = 1009 * stream + static_cast<uint64_t>(t) + 1;
  return {seed, stream};
}

// Random predictions and attention, as uneven as those of a trained model; `coarse` makes many equal ones.
inline FakeModel random_model(uint64_t seed, int64_t vocabulary, const Sources& sources, double scale, bool coarse = false,
                              int32_t unknown = -1, int32_t padding = -1) {
  FakeModel m(vocabulary, unknown, padding);
  m.logits = [=](int32_t sentence, const Prefix& prefix) {
    Random r = random_of(seed, sentence, prefix);
    std::vector<double> z(vocabulary);
    for (double& v : z) v = coarse ? std::round(scale * r.normal()) : scale * r.normal();
    return z;
  };
  m.attention = [=](int32_t sentence, const Prefix& prefix) {
    Random r = random_of(seed + 1, sentence, prefix);
    std::vector<float> p(sources[sentence].size());
    float sum = 0;
    for (float& v : p) sum += v = static_cast<float>(std::exp(2 * r.normal()));
    for (float& v : p) v /= sum;
    return p;
  };
  return m;
}

inline std::vector<double> log_softmax(const std::vector<double>& z) {
  double sum = 0;
  for (double v : z) sum += std::exp(v);
  std::vector<double> result;
  for (double v : z) result.push_back(v - std::log(sum));
  return result;
}

inline SearchOptions options(int64_t beam, double alpha, double beta) {
  SearchOptions o;
  o.beam = beam, o.length_penalty = alpha, o.coverage_penalty = beta;
  return o;
}

// Whether a text of tokens obeys the rules of its last token: it ends no suppressed sequence, and no n-gram occurs in it twice.
inline bool obeys(const Prefix& text, const SearchOptions& o) {
  for (const auto& sequence : o.suppress_ids)
    if (text.size() >= sequence.size() && Prefix(text.end() - static_cast<ptrdiff_t>(sequence.size()), text.end()) == sequence)
      return false;
  const auto n = static_cast<size_t>(o.no_repeat_ngram);
  if (n == 0) return true;
  std::set<Prefix> seen;
  for (size_t i = 0; i + n <= text.size(); ++i)
    if (!seen.insert(Prefix(text.begin() + static_cast<ptrdiff_t>(i), text.begin() + static_cast<ptrdiff_t>(i + n))).second) return false;
  return true;
}

// Log-probabilities after what the options change in the logits, written as the definitions say: a repeated token's logit divided or
// multiplied; (1 - beta) p, and beta more for the next token of the prefix.
inline std::vector<double> adjusted(std::vector<double> z, const Prefix& prefix, const SearchOptions& o) {
  for (const int32_t token : std::set<int32_t>(prefix.begin(), prefix.end()))
    z[token] = z[token] < 0 ? z[token] * o.repetition_penalty : z[token] / o.repetition_penalty;
  std::vector<double> result = log_softmax(z);
  const Prefix& wished = o.target_prefix_ids;
  if (o.prefix_bias == 0 || prefix.size() >= wished.size() || !std::equal(prefix.begin(), prefix.end(), wished.begin())) return result;
  for (size_t t = 0; t < result.size(); ++t)
    result[t] =
        std::log((1 - o.prefix_bias) * std::exp(result[t]) + (static_cast<int32_t>(t) == wished[prefix.size()] ? o.prefix_bias : 0));
  return result;
}

inline double plain_score(const SearchOptions& o, double log_probability, size_t length) {
  const auto n = static_cast<double>(length);
  const double lp =
      o.length_penalty_form == LengthPenaltyForm::power ? std::pow(n, o.length_penalty) : length_penalty(o.length_penalty, length);
  return (log_probability - o.word_penalty * n) / lp;
}

// Beam search written as plainly as possible: all continuations of all hypotheses, sorted; prefixes copied; whether a hypothesis may still
// enter the list is tried for every length that it may get. `logits` are the model's unless given.
using Logits = std::function<std::vector<double>(int32_t sentence, const Prefix&)>;
inline std::vector<Hypothesis> plain_search(FakeModel& m, int32_t sentence, int64_t source_tokens, const SearchOptions& o,
                                            const Logits& logits = {}) {
  struct Open {
    Prefix prefix;
    double log_probability;
  };
  const auto V = static_cast<size_t>(m.vocabulary().target_size);
  const int64_t limit = static_cast<int64_t>(o.max_length_factor * static_cast<double>(source_tokens)) + o.max_length_offset;
  const bool falling = o.replace_ended && o.length_penalty == 0 && o.word_penalty == 0;
  const auto enough = static_cast<size_t>(falling ? 1000000 : std::max<int64_t>(o.n_best, std::llround(o.patience * o.beam)));
  std::vector<Open> open{{{}, 0}};
  std::vector<Hypothesis> done;
  const auto finish = [&](const Prefix& prefix, double log_probability, int64_t length) {
    done.push_back({prefix, length, log_probability, plain_score(o, log_probability, length)});
  };
  bool may_always_end = false;
  for (int64_t length = 1; !open.empty(); ++length) {
    std::vector<Open> all;  // the last token is the continuation
    const auto extend = [&](const Open& h) {
      Memory& memory = m.parameters().backend().memory();
      const Shape row{1, static_cast<int64_t>(V)};
      const Tensor z(row, DType::f64, memory), best(row, DType::f64, memory), order(row, DType::i32, memory),
          sum({1, 2}, DType::f64, memory);
      const bool changed = o.repetition_penalty != 1 || o.prefix_bias > 0;
      const std::vector<double> own = logits ? logits(sentence, h.prefix) : m.logits(sentence, h.prefix);
      z.from_doubles(changed ? adjusted(own, h.prefix, o) : own);
      m.parameters().backend().top_logits(z, V, best, order, sum);
      std::vector<double> values = best.to_doubles();
      for (double& v : values) v = static_cast<float>(v - sum.to_doubles()[0] - std::log(sum.to_doubles()[1]));
      std::vector<int32_t> tokens(V);
      order.read<int32_t>(tokens);
      for (size_t i = 0; i < V; ++i) {
        const bool may_end = may_always_end || (!o.fixed_length && static_cast<int64_t>(h.prefix.size()) >= o.min_length);
        if (tokens[i] == kEnd && !may_end) continue;
        if (!o.allow_unknown && tokens[i] == m.vocabulary().unknown) continue;
        if (tokens[i] == m.vocabulary().padding) continue;
        all.push_back({h.prefix, h.log_probability + values[i]});
        all.back().prefix.push_back(tokens[i]);
        if (!obeys(all.back().prefix, o)) all.pop_back();
      }
    };
    for (const Open& h : open) extend(h);
    if (all.empty()) {  // all is forbidden but the end
      may_always_end = true;
      for (const Open& h : open) extend(h);
    }
    std::stable_sort(all.begin(), all.end(), [](const Open& a, const Open& b) { return a.log_probability > b.log_probability; });
    const size_t places = o.replace_ended ? o.beam : o.beam - done.size();
    open.clear();
    for (size_t rank = 0; rank < all.size(); ++rank) {
      Open& h = all[rank];
      const bool ended = h.prefix.back() == kEnd, first = rank < places;
      if (ended) h.prefix.pop_back();
      if (ended && first) finish(h.prefix, h.log_probability, length);
      if (!ended && (first || (o.replace_ended && length < limit && open.size() < places))) open.push_back(h);
    }
    if (length == limit)
      for (const Open& h : open) finish(h.prefix, h.log_probability, length);
    if (length == limit || done.size() >= enough) open.clear();
    const auto may_enter = [&](const Open& h) {
      double highest = -1e30;
      for (int64_t n = length; n <= limit; ++n) highest = std::max(highest, plain_score(o, h.log_probability, n));
      return std::count_if(done.begin(), done.end(), [&](const Hypothesis& d) { return d.score >= highest; }) < o.n_best;
    };
    while (!open.empty() && !may_enter(open.back())) open.pop_back();
  }
  std::stable_sort(done.begin(), done.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  done.resize(std::min<size_t>(done.size(), o.n_best));
  return done;
}

}  // namespace starling
