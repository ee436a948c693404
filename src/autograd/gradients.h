// The gradient of one update: what its backward passes add up to in the store's flat buffer. Several passes may be under way at once.
#pragma once

#include <memory>
#include <vector>

#include "autograd/parameters.h"

namespace starling {

// Gradients of looked-up rows, one per token, as they came: for exchanging an embedding's gradient before it is added up.
struct TokenGradients {
  std::vector<int32_t> tokens;
  std::vector<Tensor> rows;  // [n, D] each, n as in tokens, one tensor per lookup
};

class GradientSum {
 public:
  explicit GradientSum(ParameterStore& parameters)
      : parameters_(parameters), written_(parameters.declared().size()), tokens_(parameters.declared().size()) {}

  // Between these two, backward passes add up their gradients; parameters that no pass reached get a zero gradient.
  void begin() { written_.assign(written_.size(), false); }
  void complete();
  // How the next contribution to p.gradient is to be written.
  Write next_write(const Parameter& p);

  // From here on look-ups put their gradients into tokens(p) in place of adding them to p.gradient; until drop_tokens().
  void keep_tokens(const Parameter& p) { tokens_[p.index] = std::make_unique<TokenGradients>(); }
  TokenGradients* tokens(const Parameter& p) const { return tokens_[p.index].get(); }
  void drop_tokens();

 private:
  ParameterStore& parameters_;
  std::vector<bool> written_;                            // by parameter; false: the next contribution overwrites
  std::vector<std::unique_ptr<TokenGradients>> tokens_;  // by parameter; null: not kept
};

}  // namespace starling
