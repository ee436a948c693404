// The model of a replica that is divided, as decoding wants it: all layers on each rank, in shards among as many of the replica's ranks as
// it can be cut for. It is made of the ranks' parts for a validation, and gone afterwards; no rank ever has more of it than its shard,
// which is the whole where the model cannot be cut for these ranks.
#pragma once

#include <memory>
#include <optional>

#include "comm/mesh.h"
#include "models/model.h"
#include "parallel/stages.h"

namespace starling {

class DecodingModel {
 public:
  // Both must live as long as this. Collective among the replica.
  DecodingModel(Model& part, const Mesh& mesh);
  // This rank's shard, for inference, with the parameters that the ranks have now; null on a rank that has none. It must not live longer
  // than this. Collective among the replica.
  std::unique_ptr<Model> make();
  // The first `shards()` ranks of the replica.
  int shards() const { return shards_; }

 private:
  void fill(Model* model) const;

  Model& part_;
  const Mesh& mesh_;
  int shards_ = 1;
  std::vector<std::vector<Owner>> owners_;  // by parameter
  std::unique_ptr<Communicator> comm_;
  std::optional<ShardCommunicator> group_;
};

}  // namespace starling
