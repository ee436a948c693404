// R-Drop (Wu et al. 2021): each sentence is passed twice with different dropout masks, and the two distributions of each target token are
// drawn together. The batches of a run are those of the text; a replica computes their doubles.
#pragma once

#include "base/batch.h"

namespace starling {

// Each sentence twice, one behind the other, the second with other masks; weights are halved, so that losses and gradients are means over
// the two passes. r_drop: alpha, the factor of the divergence.
Batch doubled(const Batch& batch, double r_drop);

// Of each sentence of the text in this batch.
inline int64_t passes_of(const Batch& batch) { return batch.r_drop > 0 ? 2 : 1; }

// Of so many target tokens at once, those of the text.
inline int64_t text_tokens(int64_t tokens, double r_drop) { return r_drop > 0 && tokens > 1 ? tokens / 2 : tokens; }

}  // namespace starling
