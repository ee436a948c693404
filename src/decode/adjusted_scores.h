// Scores of continuations whose logits are changed before they become probabilities: tokens that a hypothesis has already, or one that is
// favoured.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autograd/shards.h"

namespace starling {

struct RowAdjustment {
  int32_t row = 0;
  // Logits of these tokens, each once, are divided by the penalty if they are above 0, else multiplied by it.
  std::vector<int32_t> repeated;
  double repetition_penalty = 1;
  // This token's probability p becomes (1 - bias) p + bias, that of all others (1 - bias) p; -1: none.
  int32_t favoured = -1;
  double bias = 0;
};

// Replaces the log-probabilities and the tokens of the k best continuations, [R, k] as log_softmax_top_k() without shards gives them, in
// the rows of the adjustments; other rows stay. Waits.
void adjust_scores(Backend& backend, const OutputProduct& output, std::span<const RowAdjustment> adjustments, int64_t k,
                   std::vector<float>& values, std::vector<int32_t>& tokens);

}  // namespace starling
