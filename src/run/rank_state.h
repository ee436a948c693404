// What a run's ranks have for themselves: each rank gives its own for a checkpoint, and gets it back from the first rank with the same part
// of the model (rank 0, unless the model is divided), which reads the files.
// The calls of a resume are collective: every rank makes the same ones in the same order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replica/replica.h"
#include "run/rank_checkpoint.h"

namespace starling {

class RankState {
 public:
  RankState(Replica& replica, const Mesh& mesh) : replica_(replica), mesh_(mesh), comm_(mesh.data_parallel()) {}

  // This rank's file; nothing if other ranks have all of it. Where replicas are merged: its own with its optimizer; else the optimizer's
  // state for what this rank owns, and rank 0's raw parameters where the model has their average. Further what the strategy keeps. Where
  // replicas are served, rank 0's is that of the servers. values: the replica's parameters, wherever they lie while others are deployed;
  // strategy: strategy_state(). Tensors must stay unchanged until the part is written.
  std::optional<Part> shard(const Tensor& values, const std::vector<Strategy::StateTensor>& strategy);

  // Every rank gets the optimizer's state of what it owns; where replicas were merged, the mean of theirs. False where the checkpoint lacks
  // it (it was trained by another optimizer): moments begin anew after the update that the optimizer is at. saved: of those that read,
  // elsewhere null.
  bool scatter_optimizer(const RankCheckpoints* saved);
  // The strategy's state that is the same on all ranks, as far as the checkpoint has it in the same size.
  void scatter_shared(const RankCheckpoints* saved);
  // What each rank had for itself, to that rank. saved: of as many ranks and this strategy, else null. False, and nothing done, if not all
  // of it is there, or there is no such state.
  bool scatter_own(const RankCheckpoints* saved);

 private:
  // A state of this rank's own: of the parameters, or a tensor of the strategy.
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
