// The memory that a beam search takes, known before it starts: a wide beam times a large batch is easily more than there is, and a process
// that asks for more than its share is killed without a word.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.h"
#include "decode/beam_search.h"

namespace starling {

// Bytes at the peak of one beam_search, without the weights.
struct SearchNeed {
  int64_t rows = 0;         // hypotheses extended at once
  int64_t scores = 0;       // their scores of target pieces, as many as exist at a time, and the best of them
  int64_t activations = 0;  // of one step, and of encoding the sources
  int64_t states = 0;       // caches of prefixes and sources, and which rows they are
  int64_t total() const { return scores + activations + states; }
};

// Of a batch of sources with `tokens` tokens in all. Translations are taken to be as long as their sources on average (`options` may fix
// their length or limit it to less), and to have no prefixes in common; `activation_bytes` is the size of one activation; of a model in so
// many shards the need of one.
SearchNeed search_need(const ModelConfig& config, const ModelVocabulary& vocabulary, const SearchOptions& options, int64_t sentences,
                       int64_t tokens, int64_t activation_bytes, int64_t shards = 1);

SearchNeed sum_of(std::span<const SearchNeed> needs);

// ResourceError with all numbers when searches that run side by side (`needs`, largest first) take more than the part of `memory` that each
// of the `processes` has which share it. `sentences`: of one search.
void require_memory(std::span<const SearchNeed> needs, const SearchOptions& options, int64_t sentences, const UsableMemory& memory,
                    int processes = 1);

}  // namespace starling
