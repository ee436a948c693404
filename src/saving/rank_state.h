// Saves and restores per-rank state: for a checkpoint each rank gives its own; on resume it gets it back from the first rank with the same
// part of the model (rank 0, unless the model is divided), which reads the files.
// The calls of a resume are collective: every rank makes the same ones in the same order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replica/replica.h"
#include "saving/rank_checkpoint.h"

namespace starling {

class RankState {
 public:
  RankState(Replica& replica, const Mesh& mesh) : replica_(replica), mesh_(mesh), comm_(mesh.data_parallel()) {}

  // Returns this rank's file; nothing if other ranks have all of it. Where replicas are merged, it has the replica's parameters and
  // optimizer state; where they are equal, the optimizer state of what this rank owns; on the first replica, also the raw parameters if the
  // model has their moving average. The strategy's state is added; on rank 0 of served replicas that is the servers' state. values: the
  // replica's parameters, wherever they are while others are deployed; strategy: strategy_state(). Tensors must stay unchanged until the
  // part is written.
  std::optional<Part> shard(const Tensor& values, const std::vector<Strategy::StateTensor>& strategy);

  // Gives every rank the optimizer state of what it owns; where replicas were merged, the mean of theirs. Returns false if the checkpoint
  // lacks it (another optimizer trained it): the moments are then reset, at the optimizer's current update. saved: on the ranks that read,
  // elsewhere null.
  bool scatter_optimizer(const RankCheckpoints* saved);
  // Restores the strategy's state that is equal on all ranks, as far as the checkpoint has it in the same size.
  void scatter_shared(const RankCheckpoints* saved);
  // Gives each rank its own state back. saved: null unless the checkpoint has as many ranks and this strategy. Returns false without
  // changing anything if that state is missing or incomplete.
  bool scatter_own(const RankCheckpoints* saved);

 private:
  // A per-rank state: elements per parameter, or a tensor of the strategy.
  struct Own {
    std::string name;
    Tensor tensor;
    bool of_parameters;
  };
  bool first() const { return comm_.rank() == 0; }
  bool sharded() const;
  std::vector<Range> everything() const { return {{0, replica_.model().parameters().flat_count()}}; }
  std::vector<Own> own();
  bool read(const RankCheckpoints& saved, const Own& own, int replica, std::vector<std::byte>& bytes) const;
  std::vector<std::byte> moments(const RankCheckpoints* saved, const std::string& name, const std::vector<Range>& ranges, DType type) const;

  Replica& replica_;
  const Mesh& mesh_;
  Communicator& comm_;  // of the ranks with the same part of the model
};

}  // namespace starling
