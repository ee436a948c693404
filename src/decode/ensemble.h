// What the models of an ensemble predict together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autograd/shards.h"

namespace starling {

// Keeps the memory of the logits from step to step.
class EnsembleScores {
 public:
  // As log_softmax_top_k() without shards, for the weighted mean of the log-probabilities of `first` and of `others`, renormalised: the k
  // largest of each row in `values`, descending, and their tokens, both [R, k]. All are products for the same R rows and the same tokens.
  // `weights` are those of all models, which sum to 1; empty: all alike. Waits.
  void top_k(Backend& backend, const OutputProduct& first, std::span<const OutputProduct> others, std::span<const double> weights,
             int64_t k, std::vector<float>& values, std::vector<int32_t>& tokens);

 private:
  Tensor mean_, logits_;
};

}  // namespace starling
