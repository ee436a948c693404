// Log-probabilities of given translations.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/batches.h"
#include "decode/framing.h"
#include "models/model.h"

namespace starling {

// Returns what a model reads of a pair, with the prefixes of the options, which must be those of with_prefixes().
EncodedPair framed_pair(const Vocabularies& vocabularies, std::string_view source, std::string_view target, const SearchOptions& options);
// The same for sides that are given as pieces with spaces between them; what a vocabulary does not have is unknown to the model.
EncodedPair framed_pair_of_pieces(const Vocabularies& vocabularies, std::string_view source, std::string_view target,
                                  const SearchOptions& options);

// Returns the log-probability (nats) of each target token, the end of sentence included, for each pair; tokens of the options' target
// prefix, which is given, are left out. Computes about batch_tokens target tokens at once. `scored`, if given, is called with the number of
// pairs done.
std::vector<std::vector<float>> pair_scores(Model& model, std::span<const EncodedPair> pairs, const SearchOptions& options,
                                            int64_t batch_tokens, const std::function<void(int64_t pairs)>& scored = {});

// Returns the sum of a pair's scores, its log-probability.
double score_of(const std::vector<float>& scores);
// Returns a line of `starling score`: the sum, or per_token the mean, and, with_tokens, the target's pieces and the score of each
// (docs/reference/formats.md).
std::string score_line(const std::vector<float>& scores, std::span<const int32_t> tokens, const Vocabulary& target, bool per_token,
                       bool with_tokens);

// Returns for each target token, without the options' target prefix and the end, the source token that it attends to most, counted without
// the source's prefix: the alignment of given translations. The end of the source stands for none.
std::vector<std::vector<int32_t>> pair_alignments(Model& model, const Vocabulary& source, std::span<const EncodedPair> pairs,
                                                  const SearchOptions& options, int64_t batch_tokens);

}  // namespace starling
