// What a rank's memory holds during training, by kind, counted from its tensors: where nothing is computed it can be known beforehand.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/batch.h"
#include "replica/replica.h"

namespace starling {

// Bytes.
struct RankMemory {
  double parameters = 0, gradients = 0;
  double optimizer = 0;    // moments, and the moving average of parameters
  double packed = 0;       // matrices packed for products, and transposed ones
  double copies = 0;       // parameters that other ranks of the replica own, and their gradients
  double strategy = 0;     // residuals, merged models
  double activations = 0;  // of the micro-batches in flight, with their gradients
  double total() const { return parameters + gradients + optimizer + packed + copies + strategy + activations; }
};

// The tensors that a replica has from its beginning, by kind.
struct TensorsOfKind {
  std::string kind;
  double RankMemory::*place;
  std::vector<Tensor> tensors;
  double bytes() const;
};
std::vector<TensorsOfKind> tensors_by_kind(Replica& replica);

// Returns what a replica holds after its steps so far. On a MetaBackend, the activations of an undivided model are missing.
RankMemory memory_of(Replica& replica);

// Returns the batch with the most tokens, of at least one.
const Batch& largest_batch(std::span<const Batch> batches);

// Runs a forward and a backward pass over the whole batch (where nothing is computed, a replica would pass one token in its place). Its
// gradients replace those that were there. Returns the bytes of activations.
double pass_of_whole_batch(Model& model, const Batch& batch);

}  // namespace starling
