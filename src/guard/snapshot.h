// A replica as it was after some update, in memory: its part of the parameters, their average, optimizer and strategy.
#pragma once

#include <utility>
#include <vector>

#include "replica/replica.h"

namespace starling {

class ReplicaSnapshot {
 public:
  // The replica must outlive this. Its replicas must be equal on all ranks (Replicas::equal).
  explicit ReplicaSnapshot(Replica& replica) : replica_(replica) {}

  // Keeps the replica as it is, in place of what was kept. Collective where parameters are still on their way.
  void keep();
  // Makes the replica what it was. Collective.
  void restore();
  bool kept() const { return !tensors_.empty(); }
  // Bytes that it takes on this rank.
  int64_t bytes() const;

 private:
  std::vector<Tensor> live();

  Replica& replica_;
  std::vector<Tensor> tensors_;  // copies of live(), in its order
  int64_t updates_ = 0, moments_since_ = 0;
};

}  // namespace starling
