// The gradient of one update: what its backward passes accumulate in the store's flat buffer. Several passes may be in progress at once.
#pragma once

#include <memory>
#include <vector>

#include "autograd/parameters.h"

namespace starling {

// Gradients of looked-up rows, one per token, with duplicates: for exchanging an embedding's gradient before it is summed by row.
struct TokenGradients {
  std::vector<int32_t> tokens;
  std::vector<Tensor> rows;  // [n, D] each, n as in tokens, one tensor per lookup
};

// Accumulates the parameters' gradients over the backward passes of an update.
class GradientSum {
 public:
  explicit GradientSum(ParameterStore& parameters)
      : parameters_(parameters), written_(parameters.declared().size()), tokens_(parameters.declared().size()) {}

  // Backward passes accumulate gradients between these two calls; complete() zeroes the gradients of parameters that no pass reached.
  void begin() { written_.assign(written_.size(), false); }
  void complete();
  // Whether the next contribution to p.gradient overwrites it or adds to it.
  Write next_write(const Parameter& p);

  // Until drop_tokens(), look-ups put their gradients into tokens(p) instead of adding them to p.gradient.
  void keep_tokens(const Parameter& p) { tokens_[p.index] = std::make_unique<TokenGradients>(); }
  TokenGradients* tokens(const Parameter& p) const { return tokens_[p.index].get(); }
  void drop_tokens();

 private:
  ParameterStore& parameters_;
  std::vector<bool> written_;                            // by parameter; false: the next contribution overwrites
  std::vector<std::unique_ptr<TokenGradients>> tokens_;  // by parameter; null: not kept
};

}  // namespace starling
