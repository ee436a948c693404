// What a search keeps of each sentence: the tree of its hypotheses, those that are finished, and the attention of the last step. For the
// sources of Search alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "decode/search.h"

namespace starling {

// What a log-probability is divided by.
inline double length_penalty(const SearchOptions& o, int64_t length) {
  if (o.length_penalty == 0) return 1;
  const auto n = static_cast<double>(length);
  return std::pow(o.length_penalty_form == LengthPenaltyForm::power ? n : (5.0 + n) / 6.0, o.length_penalty);
}

// A node of the tree of prefixes.
struct SearchPrefix {
  int32_t parent, token;
  int32_t source;     // the aligned source token, if requested
  int32_t attention;  // number of the kept row of attention; -1: not requested
  float log_probability;
};

struct Search::Joining {
  int64_t key;
  std::vector<int32_t> source;
  SearchOptions options;
  std::vector<std::vector<int32_t>> for_others;
  OnToken on_token;
  bool with_terms = false;  // as Sentence::with_terms
};

// A live hypothesis: its row in the last step, its last token, and its place in the tree of prefixes.
struct Search::Live {
  int32_t row, token;
  int32_t prefix;  // index into Sentence::prefixes, -1 for the empty one
  double log_probability;
  int32_t shown = 0;    // tokens that show text, without those of the target prefix
  bool follows = true;  // the target prefix so far
  Terms::State terms{};
};

struct Search::Sentence {
  int64_t key = 0;
  SearchOptions options;
  int32_t number = 0;                  // number of the sentence in the model's state
  std::vector<int32_t> other_numbers;  // in the states of the other models of an ensemble
  int64_t source_tokens = 0;
  int64_t limit = 0;            // most target tokens, including the end of sentence
  int64_t length = 0;           // target tokens of the live hypotheses after this step
  double longest_penalty = 1;   // the length penalty at the limit
  int64_t enough = 0;           // finished hypotheses with which the search ends
  bool may_always_end = false;  // where nothing else is allowed any more
  bool with_terms = false;      // the terms are made to be there
  std::vector<int32_t> source;  // for the second search, if there are terms
  ForbiddenTokens forbidden;
  int64_t examined = 0;  // continuations()
  std::vector<SearchPrefix> prefixes;
  std::vector<Live> live;  // best first
  std::vector<Hypothesis> finished;
  std::vector<double> best_scores;  // of the finished hypotheses, the n_best at most, descending
  OnToken on_token;
  // The attention of the rows of the last step, [rows, source_tokens], and its sum over all target tokens so far. Rows refer to their
  // parents, so reordering a beam costs only the addition that is needed anyway.
  int32_t first_row = -1;
  std::vector<float> attention, covered, covered_before;
  std::vector<std::vector<float>> kept;  // rows of attention, for Hypothesis::attention

  bool is_blank(int32_t token) const {
    return std::find(options.blank_ids.begin(), options.blank_ids.end(), token) != options.blank_ids.end();
  }
  bool covers() const { return options.coverage_penalty > 0; }
  int64_t forced() const { return options.prefix_bias > 0 ? 0 : static_cast<int64_t>(options.target_prefix_ids.size()); }
  int64_t hidden() const { return std::max<int64_t>(forced() - options.shown_prefix, 0); }
  bool next_is_given() const { return length < forced() && length + 1 < limit; }
  bool attends() const { return covers() || options.alignment || options.attention; }
  // Keeps the attention of a row of the last step, if requested, and returns its number.
  int32_t keep_attention(int32_t row) {
    if (!options.attention) return -1;
    const float* const weights = attention.data() + (row - first_row) * source_tokens;
    kept.emplace_back(weights + std::min(static_cast<int64_t>(options.source_prefix_ids.size()), source_tokens - 1),
                      weights + source_tokens);
    return static_cast<int32_t>(kept.size()) - 1;
  }

  // Stores the attention of a step for the rows from `row` on, which extend `parents` (-1: none).
  void attend(std::span<const double> weights, int32_t row, std::span<const int32_t> parents) {
    attention.assign(weights.begin(), weights.end());
    if (covers()) {
      std::swap(covered, covered_before);
      covered = attention;
      for (size_t r = 0; r < parents.size() && parents[r] >= 0; ++r) {
        const float* before = covered_before.data() + (parents[r] - first_row) * source_tokens;
        float* sum = covered.data() + static_cast<int64_t>(r) * source_tokens;
        for (int64_t i = 0; i < source_tokens; ++i) sum[i] += before[i];
      }
    }
    first_row = row;
  }
  // Returns sum_i log(min(max(coverage_i, floor), 1)) of a row of the last step.
  double log_coverage(int32_t row) const {
    const float* sum = covered.data() + (row - first_row) * source_tokens;
    double total = 0;
    for (int64_t i = 0; i < source_tokens; ++i) total += std::log(std::clamp(static_cast<double>(sum[i]), kCoverageFloor, 1.0));
    return total;
  }
  // Returns the token of the source's text, counted without its prefix, with the most attention in a row of the last step, the first of
  // equal ones; 0 if alignment was not requested.
  int32_t aligned(int32_t row) const {
    if (!options.alignment) return 0;
    const float* weights = attention.data() + (row - first_row) * source_tokens;
    const float* const text = weights + std::min(static_cast<int64_t>(options.source_prefix_ids.size()), source_tokens - 1);
    return static_cast<int32_t>(std::max_element(text, weights + source_tokens) - text);
  }

  // The highest score that a hypothesis of `length` tokens or more may still reach. Log-probabilities only fall and the coverage penalty is
  // at most 0, so without a word penalty that is its sum over the largest length penalty.
  double reach(double log_probability) const {
    const double w = options.word_penalty;
    if (w == 0) return log_probability / longest_penalty;
    const double highest = log_probability - w * static_cast<double>(w > 0 ? length - forced() : limit - forced());
    return highest / (highest < 0 ? longest_penalty : length_penalty(options, length - forced()));
  }
  // Whether a live hypothesis can no longer matter.
  bool hopeless(double log_probability) const {
    if (best_scores.empty()) return false;
    const double highest = reach(log_probability);
    return (static_cast<int64_t>(best_scores.size()) == options.n_best && highest <= best_scores.back()) ||
           (options.prune_threshold > 0 && highest < best_scores.front() - options.prune_threshold);
  }
  void add_finished(Hypothesis h) {
    if (with_terms && h.missing_terms > 0) return finished.push_back(std::move(h));
    best_scores.insert(std::upper_bound(best_scores.begin(), best_scores.end(), h.score, std::greater<>()), h.score);
    if (static_cast<int64_t>(best_scores.size()) > options.n_best) best_scores.pop_back();
    finished.push_back(std::move(h));
  }

  std::vector<Hypothesis> best() {
    std::stable_sort(finished.begin(), finished.end(), [this](const auto& a, const auto& b) {
      return with_terms && a.missing_terms != b.missing_terms ? a.missing_terms < b.missing_terms : a.score > b.score;
    });
    if (static_cast<int64_t>(finished.size()) > options.n_best) finished.resize(options.n_best);
    if (options.prune_threshold > 0 && !with_terms)
      while (finished.back().score < best_scores.front() - options.prune_threshold) finished.pop_back();
    return std::move(finished);
  }
};

}  // namespace starling
