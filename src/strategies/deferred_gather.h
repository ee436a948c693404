// Parameters that their owners have updated, on their way to the other ranks. Of a bucket they are asked for as soon as they are updated,
// or, where the next forward pass waits for them unit by unit, two units before it reads them: with more under way at once each would have
// a smaller share of the link, and the first would come late.
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

  // An update begins, of all buckets in the order of the flat buffer, which is that of the forward pass. late: nothing waits for parameters
  // before they are read (ParameterStore::expect).
  void begin(Worker& w, bool late);
  // What this rank owns of bucket b is updated.
  void updated(Worker& w, size_t b);
  // All of it is.
  void end(Worker& w);

 private:
  // Waits for the parameters of a unit of the model.
  void arrive(Worker& w, size_t unit);
  // Asks for the buckets from b on that are not asked for yet: all ranks do in the same order.
  void issue_until(Worker& w, size_t b);
  Pending ask(Worker& w, size_t b);
  // Waits for bucket b.
  void complete(Worker& w, size_t b);

  const std::vector<Bucket>& buckets_;
  const Ownership& ownership_;
  const Ranks ranks_;
  const Tensor values_;
  std::optional<RoundedSteps> rounded_;
  std::vector<std::set<size_t>> units_;  // that use parameters of a bucket
  std::vector<Pending> pending_;         // by bucket
  std::vector<bool> landed_;
  size_t asked_ = 0;  // buckets from here on are asked for
  bool late_ = false;
};

}  // namespace starling
