// The model of a divided replica in the form that decoding needs: all layers on each rank, sharded among as many of the replica's ranks as
// it can be cut for. It is assembled from the ranks' parts for a validation and discarded afterwards. No rank ever holds more than its
// shard, which is the whole model if it cannot be cut for these ranks.
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
  // Makes this rank's shard, for inference, from the parameters that the ranks have now; returns null on a rank that has none. It must not
  // outlive this. Collective among the replica.
  std::unique_ptr<Model> make();
  // Shards are on the first `shards()` ranks of the replica.
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
