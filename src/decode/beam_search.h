// Beam search over any model, many sentences at once. A hypothesis that ends leaves its place in the beam, so the work shrinks; it is
// ranked by GNMT's score (Wu et al. 2016, section 7): log P / lp(Y) + cp(X, Y), with the length penalty lp(Y) = ((5 + |Y|) / 6)^alpha and
// the coverage penalty cp(X, Y) = beta * sum_i log(min(max(sum_j p_ij, floor), 1)) over the source tokens i. docs/search.md explains.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/model.h"

namespace starling {

// Attention that a source token has at least, in the coverage penalty: a token never looked at costs beta * 9.2, not infinity.
constexpr double kCoverageFloor = 1e-4;

struct SearchOptions {
  int64_t beam = 4;
  double length_penalty = 0.6;     // alpha; 0 = none
  double coverage_penalty = 0;     // beta; 0 = none
  double prune_threshold = 0;      // nats below the best at which hypotheses are given up; 0 = never
  double max_length_factor = 2.0;  // at most factor * source tokens + offset target tokens
  int64_t max_length_offset = 10;
  int64_t n_best = 1;         // at most beam
  bool fixed_length = false;  // never end before the limit: for benchmarks of speed
};

template <class Visitor>
void visit(Visitor& v, SearchOptions& c) {
  v.field("beam", c.beam, "beam width", 1, 1024);
  v.field("length-penalty", c.length_penalty,
          "alpha of ((5+|Y|)/6)^alpha, which a hypothesis' log-probability is divided by; 0 = off (presets gnmt...: 0.2)", 0.0, 10.0);
  v.field("coverage-penalty", c.coverage_penalty,
          "beta of what source tokens with less than 1 of attention in all cost a hypothesis; 0 = off (presets gnmt...: 0.2)", 0.0, 10.0);
  v.field("prune-threshold", c.prune_threshold, "hypotheses so many nats below the best are given up; 0 = never (presets gnmt...: 3)", 0.0,
          1000.0);
  v.field("max-length-factor", c.max_length_factor, "a translation has at most factor * source tokens + offset tokens", 0.0, 100.0);
  v.field("max-length-offset", c.max_length_offset, "the offset of max-length-factor, tokens", 1, 100000);
}

// The published search of a model's family, by its preset: GNMT's alpha 0.2, beta 0.2, threshold 3 (Wu et al. 2016, section 7), else the
// Transformer's alpha 0.6 without the others (Vaswani et al. 2017, section 6.1). The rest is as above.
SearchOptions search_defaults(const std::string& preset);

struct Hypothesis {
  std::vector<int32_t> tokens;  // without end of sentence
  int64_t length = 0;           // tokens, with the end of sentence unless it was cut at the limit
  double log_probability = 0;   // sum over these, nats
  double score = 0;             // with the penalties of length and coverage: what hypotheses are ranked by
};

// What a search has computed: a measure of its cost that no other load of the machine changes.
struct SearchWork {
  int64_t steps = 0, rows = 0;  // calls of Model::next_logits, and the hypotheses they extended
};

// The n_best hypotheses of each source (token ids ending with end of sentence), best first; fewer where pruning left fewer. All sources
// are decoded as one batch; give them in order of similar length. `work`, if given, is added to.
std::vector<std::vector<Hypothesis>> beam_search(Model& model, const ModelVocabulary& vocabulary,
                                                 std::span<const std::vector<int32_t>> sources, const SearchOptions& options,
                                                 SearchWork* work = nullptr);

}  // namespace starling
