// How the ranks of a run are arranged: some ranks hold the parts of one replica of the model, and the replicas work on shares of the batch.
// rank = (replica * stages + stage) * shards + shard, so that neighbours, often on one host, are the shards of a stage, then the stages of
// a replica. Every data-parallel strategy runs among the ranks with equal stage and shard.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/shard_communicator.h"

namespace starling {

// The `parallel` section: how one replica of the model is divided among ranks.
struct ParallelOptions {
  int64_t pipeline = 1;         // stages
  int64_t tensor = 1;           // shards of a stage
  std::vector<int64_t> stages;  // number of units of each stage; empty: balanced by their cost
  int64_t micro_batches = 0;    // 0: 4 per stage
  int64_t time_pieces = 0;      // pieces in which a micro-batch goes from stage to stage; 0: whole sentences
  bool hybrid = false;          // every stage has the output, for a share of the sentences

  int64_t ranks() const { return pipeline * tensor; }
  // The least number of micro-batches in a worker's share of the batch.
  int64_t passes() const { return pipeline == 1 ? 1 : micro_batches > 0 ? micro_batches : 4 * pipeline; }
};
template <class Visitor>
void visit(Visitor& v, ParallelOptions& o) {
  v.field("pipeline", o.pipeline,
          "stages that the model's layers are cut into, each on its own rank; 1 = layers are not divided among stages", 1, 1024);
  v.numbers("stages", o.stages,
            "number of units of each stage, in the order encoder layers, decoder layers, output; empty = cut so that the costliest stage "
            "costs as little as possible",
            1, 100000);
  v.field("tensor", o.tensor,
          "shards that each layer and vocabulary is cut into, each on a rank of its own: columns, heads and tokens; 1 = each rank has "
          "whole layers",
          1, 1024);
  v.field("micro-batches", o.micro_batches,
          "least number of micro-batches that a pipeline makes of a worker's share of the batch; 0 = 4 per stage", 0, 1 << 20);
  v.field("time-pieces", o.time_pieces,
          "for gnmt in stages: pieces of time in which a micro-batch goes from stage to stage, so that the next stage can begin before the "
          "sentences end; 0 = whole sentences",
          0, 1024);
  v.field("hybrid", o.hybrid,
          "for gnmt in stages with model.attention-place top: attention, readout and softmax are on every stage, each for a share of the "
          "sentences");
}

// Throws ConfigError if options contradict each other.
void check(const ParallelOptions& options);

// The ranks of a run as a grid of replicas x stages x shards, and the communicators along its dimensions.
class Mesh {
 public:
  // Collective among all ranks. Throws ConfigError if the ranks do not form whole replicas.
  Mesh(Communicator& all, const ParallelOptions& options);
  // Replicas of one rank each.
  explicit Mesh(Communicator& all) : Mesh(all, {}) {}

  int replicas() const { return data_parallel().size(); }
  int stages() const { return stages_; }
  // The number of units of each stage; empty: balanced.
  const std::vector<int64_t>& stage_sizes() const { return stage_sizes_; }
  int stage() const { return stage_; }
  bool first_stage() const { return stage_ == 0; }
  bool last_stage() const { return stage_ + 1 == stages_; }
  int shards() const { return group_->size(); }
  int shard() const { return group_->rank(); }
  // Whether a replica spans several ranks.
  bool divided() const { return replica_ != nullptr; }
  // The pieces of time in which activations go from stage to stage.
  int64_t time_pieces() const { return time_pieces_; }
  // Whether the model's output is on every stage, each of which computes it for a share of the sentences.
  bool hybrid() const { return hybrid_; }
  // Whether this is the first replica's rank for this part of the model, which reads and writes what all replicas share.
  bool leads() const { return data_parallel().rank() == 0; }
  // Whether this rank counts its replica's losses and tokens, which all shards of the last stage have.
  bool counts() const { return last_stage() && shard() == 0; }
  // The rank, among all, that holds this part of the model in a replica.
  int rank_of(int replica) const { return replica * replica_size() + this->replica().rank(); }
  // The rank, within a replica, that holds this part of the model.
  int part_of(int stage, int shard) const { return stage * shards() + shard; }

  int replica_size() const { return replica().size(); }
  Communicator& all() const { return all_; }
  // The ranks that hold the same part of the model: rank r belongs to replica r.
  Communicator& data_parallel() const { return data_ ? *data_ : all_; }
  // The ranks that hold the parts of this replica.
  Communicator& replica() const { return replica_ ? *replica_ : *alone_; }
  // The ranks of this replica with this shard: rank s is stage s.
  Communicator& pipeline() const { return pipeline_ ? *pipeline_ : stages_ > 1 ? replica() : *alone_; }
  // The ranks of this replica with this stage: rank t has shard t.
  ShardCommunicator& tensor_parallel() const { return *group_; }

 private:
  Communicator& all_;
  int stages_, stage_ = 0;
  std::vector<int64_t> stage_sizes_;
  int64_t time_pieces_;
  bool hybrid_;
  std::unique_ptr<Communicator> data_, replica_, alone_;  // the first two are empty if nothing is divided
  std::unique_ptr<Communicator> pipeline_, shards_;       // empty if there is at most one dimension
  std::unique_ptr<ShardCommunicator> group_;
};

}  // namespace starling
