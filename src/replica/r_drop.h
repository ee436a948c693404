// R-Drop (Wu et al. 2021): each sentence passes through the model twice, with different dropout masks, and a divergence term pulls the two
// distributions of each target token together. The batches of a run are those of the text; a replica computes doubled ones.
#pragma once

#include "base/batch.h"

namespace starling {

// Returns a batch with each sentence twice in a row, the second time with other masks. Weights are halved, so that losses and gradients are
// means over the two passes. r_drop: alpha, the factor of the divergence.
Batch doubled(const Batch& batch, double r_drop);

// Passes that this batch makes of each sentence of the text.
inline int64_t passes_of(const Batch& batch) { return batch.r_drop > 0 ? 2 : 1; }

// Returns how many of the target tokens computed at once are those of the text.
inline int64_t text_tokens(int64_t tokens, double r_drop) { return r_drop > 0 && tokens > 1 ? tokens / 2 : tokens; }

}  // namespace starling
