// Predicts the memory of a beam search, and of drawing samples. A wide beam with a large batch easily needs more than there is, and a
// process that exceeds its share is killed without a message.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.h"
#include "decode/beam_search.h"

namespace starling {

// Peak bytes of one beam_search, without the weights.
struct SearchNeed {
  int64_t rows = 0;         // hypotheses extended at once
  int64_t scores = 0;       // scores of target pieces, as many as exist at a time, and the best of them
  int64_t activations = 0;  // of one step and of encoding the sources
  int64_t states = 0;       // caches of prefixes and sources, and their row indices
  int64_t total() const { return scores + activations + states; }
};

// Returns the need for a batch of sources with `tokens` tokens in total. It assumes that translations are as long as their sources on
// average (`options` may fix or limit their length) and share no prefixes. `activation_bytes` is the size of one activation. With `shards`
// > 1, returns the need of one shard.
SearchNeed search_need(const ModelConfig& config, const ModelVocabulary& vocabulary, const SearchOptions& options, int64_t sentences,
                       int64_t tokens, int64_t activation_bytes, int64_t shards = 1);

// Returns the need of drawing `rows` samples at once (decode/sampling.h), `samples` of each source, which end after `length` tokens at
// most; the sources have `tokens` tokens in total. The model is whole.
SearchNeed sampling_need(const ModelConfig& config, const ModelVocabulary& vocabulary, int64_t rows, int64_t samples, int64_t length,
                         int64_t tokens, int64_t activation_bytes);

SearchNeed sum_of(std::span<const SearchNeed> needs);

// Throws ResourceError with all figures if searches that run in parallel (`needs`, largest first) need more than this process's part of
// `memory`, which `processes` processes share. `sentences` is the number per search.
void require_memory(std::span<const SearchNeed> needs, const SearchOptions& options, int64_t sentences, const UsableMemory& memory,
                    int processes = 1);

}  // namespace starling
