// Floating-point operations of a step, counted from the parameters' shapes before anything is computed: what the simulator turns into time.
// Matrix products, and the bytes that do not depend on the number of tokens: packing the weights for the forward pass, writing their
// gradients in the backward pass. Attention's own products, norms and the rest are a few per cent and end up in the calibrated rate.
// Of a stage of a model, its own units are counted.
#pragma once

#include <span>
#include <vector>

#include "comm/clock.h"
#include "models/model.h"
#include "strategies/buckets.h"

namespace starling {

class ComputeCost {
 public:
  ComputeCost(Model& model, std::span<const Bucket> buckets);

  // Loss of so many tokens, the gradient of the vocabulary projection included (projection_loss computes it on the way).
  Work forward(double source_tokens, double target_tokens) const;
  // The backward pass, cut where buckets become complete: the piece before bucket b; all of it for b = -1.
  Work backward(double source_tokens, double target_tokens, int64_t bucket = -1) const;

  // Relative cost of a source and of a target token in the whole model, for dividing a batch evenly: the same on all stages.
  double source_weight() const { return whole_.source; }
  double target_weight() const { return whole_.target; }

 private:
  struct PerToken {
    double source = 0, target = 0;  // FLOP
  };
  PerToken forward_, backward_, whole_;
  std::vector<PerToken> pieces_;
  double weight_bytes_ = 0;  // of all matrices, once
  std::vector<double> piece_bytes_;
};

}  // namespace starling
