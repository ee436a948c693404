// The cross-entropy of references under a model, which validation, quantize and the check of a text's sides measure.
#pragma once

#include <algorithm>
#include <span>

#include "base/batch.h"
#include "models/model.h"

namespace starling {

struct CrossEntropy {
  double nll = 0;  // nats, of all tokens
  int64_t tokens = 0;
  double per_token() const { return nll / static_cast<double>(std::max<int64_t>(tokens, 1)); }
};

// Of every step-th batch from `first` on, without label smoothing.
CrossEntropy cross_entropy(Model& model, std::span<const Batch> batches, size_t first = 0, size_t step = 1);

}  // namespace starling
