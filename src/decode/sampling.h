// Ancestral sampling: draws translations from the model's own distribution, many per source and for many sources at once. Training on an
// expected reward (replica/refine.h) draws from the model's probabilities over the tokens that a translation may have; `translate` may also
// sharpen or flatten them, or draw from the most probable tokens only.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "decode/search.h"

namespace starling {

struct DrawnToken {
  int64_t sentence = 0, sample = 0;  // of the call
  int32_t token = 0;                 // or the end of sentence
  double log_probability = 0;        // the model's own, nats; 0 if log-probabilities are not asked for
  bool last = false;                 // the sample ends with it
};

struct SamplingOptions {
  int64_t samples = 15;            // samples per source
  double max_length_factor = 2.0;  // limit: factor * source tokens + offset target tokens, including the end of sentence
  int64_t max_length_offset = 10;
  bool allow_unknown = false;     // if false, the unknown symbol is never drawn, and the others share its probability
  uint64_t key = 0;               // key of the random numbers
  int64_t first = 0;              // number of the first sample; a source's samples may be drawn in several calls
  int64_t top_k = 0;              // draw from this many most probable tokens, which share the probability of the others; 0 = all
  double temperature = 1;         // probabilities are raised to the power 1 / temperature: below 1, probable tokens are drawn more often
  std::vector<int32_t> prefix{};  // what every sample begins with and does not show; on top of the limit
  ForbiddenTokens forbidden{};    // never drawn, and the others share their probability
  int64_t min_length = 0;         // tokens, without blank ones, at least, before a sample may end
  std::vector<int32_t> blank{};   // tokens that show no text
  double top_p = 1;               // of those, draw from the fewest most probable ones that have this much of their probability
  // If given, it is called with each token as it is drawn, and returns whether to go on with the sample.
  std::function<bool(const DrawnToken&)> told{};
};

// One list of target tokens per sample. It ends with the end of sentence unless it was cut at the limit.
using Samples = std::vector<std::vector<int32_t>>;
// The log-probability of each of their tokens, nats.
using SampleScores = std::vector<std::vector<float>>;

// Draws options.samples independent samples for each source sentence (token ids ending with end of sentence). All are decoded as one batch,
// and rows leave it when they end. Sample k (counted from options.first) of the sentence with id ids[b] depends only on (key, id, k) and
// the model, up to the rounding of the logits: other sentences of the batch do not matter. `log_probabilities`, if given, gets the model's
// own log-probability of each token of each sample, in nats, as `starling score` gives it; not with a sharded model. `each_step`, if given,
// is called before every step and may throw.
std::vector<Samples> sample_translations(Model& model, const ModelVocabulary& vocabulary, const PackedTokens& sources,
                                         std::span<const int64_t> ids, const SamplingOptions& options,
                                         std::vector<SampleScores>* log_probabilities = nullptr,
                                         const std::function<void()>& each_step = {});

}  // namespace starling
