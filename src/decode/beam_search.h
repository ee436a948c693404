// Beam search over any model, many sentences at once. A hypothesis that ends leaves its place in the beam, so the work shrinks;
// log-probabilities are divided by the length penalty of GNMT (Wu et al. 2016, section 7), lp(Y) = ((5 + |Y|) / 6)^alpha.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/model.h"

namespace starling {

struct SearchOptions {
  int64_t beam = 4;
  double length_penalty = 0.6;     // alpha; 0 = none
  double max_length_factor = 2.0;  // at most factor * source tokens + offset target tokens
  int64_t max_length_offset = 10;
  int64_t n_best = 1;         // at most beam
  bool fixed_length = false;  // never end before the limit: for benchmarks of speed
};

struct Hypothesis {
  std::vector<int32_t> tokens;  // without end of sentence
  int64_t length = 0;           // tokens, with the end of sentence unless it was cut at the limit
  double log_probability = 0;   // sum over these, nats
  double score = 0;             // divided by the length penalty: what hypotheses are ranked by
};

// The n_best hypotheses of each source (token ids ending with end of sentence), best first. All sources are decoded as one batch;
// give them in order of similar length.
std::vector<std::vector<Hypothesis>> beam_search(Model& model, const ModelVocabulary& vocabulary,
                                                 std::span<const std::vector<int32_t>> sources, const SearchOptions& options);

}  // namespace starling
