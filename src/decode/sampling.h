// Ancestral sampling: translations drawn from the model's own distribution, many of each source and many sources at once. For training on
// an expected reward (replica/refine.h), hence without temperature or truncation: the probabilities are the model's, of the tokens that a
// translation may have.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/model.h"

namespace starling {

struct SamplingOptions {
  int64_t samples = 15;            // of each source
  double max_length_factor = 2.0;  // at most factor * source tokens + offset target tokens, end of sentence included
  int64_t max_length_offset = 10;
  bool allow_unknown = false;  // else the unknown symbol is never drawn, and the others share its probability
  uint64_t key = 0;            // of the random numbers
  int64_t first = 0;           // number of the first sample: the samples of a source may be drawn in several calls
};

// The most target tokens that a sample of a source of so many tokens may have, end of sentence included.
int64_t length_limit(const SamplingOptions& options, int64_t source_tokens);

// One list of target tokens per sample; it ends with the end of sentence unless it was cut at the limit.
using Samples = std::vector<std::vector<int32_t>>;

// options.samples samples of each source sentence (token ids ending with end of sentence), independent of each other. All are decoded as
// one batch, whose rows leave it when they end. Sample k (from options.first on) of the sentence with id ids[b] is a function of (key, id,
// k) and the model alone, up to the rounding of the logits: other sentences of the batch do not matter.
std::vector<Samples> sample_translations(Model& model, const ModelVocabulary& vocabulary, const PackedTokens& sources,
                                         std::span<const int64_t> ids, const SamplingOptions& options);

}  // namespace starling
