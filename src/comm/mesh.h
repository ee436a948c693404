// How the ranks of a run are arranged: some hold the parts of one replica of the model, and as many replicas as there are work on shares
// of the batch. rank = (replica * stages + stage) * shards + shard, so that neighbours, often on one host, are the shards of a stage, then
// the stages of a replica. Every data-parallel strategy runs among the ranks with equal stage and shard.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/shard_communicator.h"

namespace starling {

// The `parallel` section: ranks of one replica of the model.
struct ParallelOptions {
  int64_t pipeline = 1;         // stages
  int64_t tensor = 1;           // shards of a stage
  std::vector<int64_t> stages;  // units of each stage; empty: balanced by their cost
  int64_t micro_batches = 0;    // 0: 4 a stage
  int64_t time_pieces = 0;      // of a micro-batch, that go from stage to stage; 0: whole sentences
  bool hybrid = false;          // the output is on every stage, for a share of the sentences

  int64_t ranks() const { return pipeline * tensor; }
  // Of a worker's share of the batch, at least.
  int64_t passes() const { return pipeline == 1 ? 1 : micro_batches > 0 ? micro_batches : 4 * pipeline; }
};
template <class Visitor>
void visit(Visitor& v, ParallelOptions& o) {
  v.field("pipeline", o.pipeline,
          "stages that the model's layers are cut into, each on a rank of its own; 1 = the model lies whole on a rank", 1, 1024);
  v.numbers(
      "stages", o.stages,
      "units of each stage, in the order of encoder layers, decoder layers, output; empty = cut so that the most costly stage costs least",
      1, 100000);
  v.field("tensor", o.tensor,
          "shards that each layer and vocabulary is cut into, each on a rank of its own: columns, heads and tokens; 1 = layers lie whole "
          "on a rank",
          1, 1024);
  v.field("micro-batches", o.micro_batches,
          "micro-batches of a worker's share of the batch, at least, that pass through a pipeline; 0 = 4 a stage", 0, 1 << 20);
  v.field(
      "time-pieces", o.time_pieces,
      "pieces of time, of gnmt in stages, in which a micro-batch goes from stage to stage: the next stage begins before the sentences have "
      "ended; 0 = whole sentences",
      0, 1024);
  v.field("hybrid", o.hybrid,
          "attention, readout and softmax, of gnmt in stages with model.attention-place top, are on every stage, each for a share of the "
          "sentences");
}

// ConfigError for options that do not fit each other.
void check(const ParallelOptions& options);

class Mesh {
 public:
  // Collective among all ranks; ConfigError if they do not make whole replicas.
  Mesh(Communicator& all, const ParallelOptions& options);
  // Replicas of one rank each.
  explicit Mesh(Communicator& all) : Mesh(all, {}) {}

  int replicas() const { return data_parallel().size(); }
  int stages() const { return stages_; }
  // Units of each; empty: balanced.
  const std::vector<int64_t>& stage_sizes() const { return stage_sizes_; }
  int stage() const { return stage_; }
  bool first_stage() const { return stage_ == 0; }
  bool last_stage() const { return stage_ + 1 == stages_; }
  int shards() const { return group_->size(); }
  int shard() const { return group_->rank(); }
  // Whether a replica has several ranks.
  bool divided() const { return replica_ != nullptr; }
  // In which activations go from stage to stage.
  int64_t time_pieces() const { return time_pieces_; }
  // Whether the model's output is on every stage, each of which computes it for a share of the sentences.
  bool hybrid() const { return hybrid_; }
  // The first replica's rank of this part of the model: what all replicas have in common, it reads and writes.
  bool leads() const { return data_parallel().rank() == 0; }
  // Whether a replica's losses and tokens are counted here: all shards of its last stage have them.
  bool counts() const { return last_stage() && shard() == 0; }
  // Of all ranks: the one of this part of a replica.
  int rank_of(int replica) const { return replica * replica_size() + this->replica().rank(); }
  // Of a replica's ranks: the one with this part of the model.
  int part_of(int stage, int shard) const { return stage * shards() + shard; }

  int replica_size() const { return replica().size(); }
  Communicator& all() const { return all_; }
  // The ranks that hold the same part of the model: rank r is replica r's.
  Communicator& data_parallel() const { return data_ ? *data_ : all_; }
  // The ranks that hold the parts of this replica.
  Communicator& replica() const { return replica_ ? *replica_ : *alone_; }
  // Of these the ranks with this shard: rank s is stage s's.
  Communicator& pipeline() const { return pipeline_ ? *pipeline_ : stages_ > 1 ? replica() : *alone_; }
  // And those with this stage: rank t has shard t.
  ShardCommunicator& tensor_parallel() const { return *group_; }

 private:
  Communicator& all_;
  int stages_, stage_ = 0;
  std::vector<int64_t> stage_sizes_;
  int64_t time_pieces_;
  bool hybrid_;
  std::unique_ptr<Communicator> data_, replica_, alone_;  // the first two empty: there is nothing to divide
  std::unique_ptr<Communicator> pipeline_, shards_;       // empty: there is one dimension at most
  std::unique_ptr<ShardCommunicator> group_;
};

}  // namespace starling
