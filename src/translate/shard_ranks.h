// The ranks that hold the shards of a model. The first one reads and writes, and broadcasts what it reads, so that all ranks translate the
// same lines together.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/shard_communicator.h"
#include "comm/world.h"
#include "decode/model_directory.h"

namespace starling {

class ShardRanks {
 public:
  // With more than one shard, joins the other ranks by `join`. Throws ConfigError if they are not as many as shards.
  ShardRanks(int64_t shards, const std::function<World()>& join);

  bool first() const { return !world_ || world_->comm->rank() == 0; }
  ShardGroup* group() { return group_ ? &*group_ : nullptr; }
  // Returns the number of threads that this rank computes with, where 0 are asked for if nobody chose.
  int threads(int asked) { return world_ && asked == 0 ? threads_of_rank() : asked; }
  int processes() const { return world_ ? world_->local_size : 1; }  // on this host

  // Returns the first rank's choice of model on all ranks: a run directory's best checkpoint may be replaced in the meantime, and "auto"
  // means different precisions on different processors.
  ModelDescription describe(FileSystem& files, const std::string& path, DeviceChoice& choice);
  // Returns the result of the first rank's take() on all ranks. Lines have no line breaks.
  std::vector<std::string> lines(const std::function<std::vector<std::string>()>& take);

 private:
  Communicator& comm() { return *world_->comm; }
  int threads_of_rank();

  std::optional<World> world_;
  std::optional<ShardCommunicator> group_;
};

}  // namespace starling
