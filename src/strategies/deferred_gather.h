// Brings parameters from the owners that updated them to the other ranks. A bucket is requested as soon as it is updated or, if the next
// forward pass waits unit by unit, two units before that pass reads it: with more requests in progress, each would get a smaller share of
// the link, and the first would arrive late.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "strategies/ownership.h"
#include "strategies/rounded_steps.h"
#include "strategies/worker.h"

namespace starling {

class DeferredGather {
 public:
  struct Ranks {
    int rank, size, workers;
    std::vector<int> servers;  // empty: parameters are gathered among all ranks
    bool narrow;               // steps come back in bf16, not parameters
  };
  // All must live as long as this.
  DeferredGather(const ParameterStore& parameters, const std::vector<Bucket>& buckets, const Ownership& ownership, const Ranks& ranks);

  // Begins an update of all buckets, in the order of the flat buffer, which is that of the forward pass. late: nothing waits for parameters
  // before they are read (ParameterStore::expect).
  void begin(Worker& w, bool late);
  // Call when this rank has updated what it owns of bucket b.
  void updated(Worker& w, size_t b);
  // Call when it has updated everything that it owns.
  void end(Worker& w);

 private:
  // Waits for the parameters of a unit of the model.
  void arrive(Worker& w, size_t unit);
  // Requests buckets, up to bucket b in the flat order, that have not been requested yet; all ranks do this in the same order.
  void issue_until(Worker& w, size_t b);
  Pending ask(Worker& w, size_t b);
  // Waits for bucket b.
  void complete(Worker& w, size_t b);

  const std::vector<Bucket>& buckets_;
  const Ownership& ownership_;
  const Ranks ranks_;
  const Tensor values_;
  std::optional<RoundedSteps> rounded_;
  std::vector<std::set<size_t>> units_;  // by bucket: the units that use its parameters
  std::vector<Pending> pending_;         // by bucket
  std::vector<bool> landed_;
  size_t asked_ = 0;  // buckets from here on have been requested
  bool late_ = false;
};

}  // namespace starling
