// What a run's ranks have for themselves, on its way between them and rank 0, which writes and reads checkpoints. All calls are collective:
// every rank makes the same ones in the same order.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/safetensors.h"
#include "train/replica.h"

namespace starling {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

class RankState {
 public:
  RankState(Replica& replica, Communicator& comm) : replica_(replica), comm_(comm) {}

  // The optimizer's state for all parameters, on rank 0 (elsewhere worth nothing): ranks that own shards send them. Does not depend on the
  // number of ranks.
  NamedTensors gather_optimizer();
  // The reverse: every rank gets the state of what it owns from rank 0, which has it for all parameters.
  void scatter_optimizer(const NamedTensors& all);

  // The strategy's state that is the same on all ranks.
  NamedTensors shared();
  // Rank 0 has the file (others: null) and gives everybody what is in it of that state, in the same size.
  void scatter_shared(const SafetensorsFile* file);

  // What each rank has for itself, on rank 0 (elsewhere empty), named rank0.parameters and so on: replicas that differ with their
  // optimizers, and what the strategy keeps for each rank.
  NamedTensors gather_own();
  // The reverse, from rank 0's file (null: there is none that fits). False, and nothing done, if not all of it is there.
  bool scatter_own(const SafetensorsFile* file);

 private:
  bool first() const { return comm_.rank() == 0; }
  bool sharded() const;
  NamedTensors own();

  Replica& replica_;
  Communicator& comm_;
};

// Adds to the optimizer's state the mean over the ranks of a file of theirs, for ranks that cannot each take up one.
void add_mean_moments(const SafetensorsFile& file, int64_t ranks, const NamedTensors& optimizer);

}  // namespace starling
