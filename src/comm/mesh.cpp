#include "comm/mesh.h"

#include <algorithm>

#include "base/error.h"
#include "comm/world.h"

namespace starling {

void check(const ParallelOptions& o) {
  if (o.hybrid && o.pipeline == 1)
    throw ConfigError("parallel.hybrid does nothing without stages; set parallel.pipeline too, or leave it out");
  if (o.hybrid && o.tensor > 1)
    throw ConfigError(
        "parallel.hybrid has the whole output on every stage, but parallel.tensor cuts it; set parallel.tensor to 1, or leave "
        "parallel.hybrid out");
}

Mesh::Mesh(Communicator& all, const ParallelOptions& o)
    : all_(all),
      stages_(static_cast<int>(o.pipeline)),
      stage_sizes_(o.stages),
      time_pieces_(std::max<int64_t>(o.time_pieces, 1)),
      hybrid_(o.hybrid) {
  const int ranks = static_cast<int>(o.ranks()), shards = static_cast<int>(o.tensor);
  check(o);
  if (all.size() % ranks != 0)
    throw ConfigError(fmt::format("{} the model among {} ranks, but {} {} not a multiple of that; start {} ranks",
                                  shards == 1    ? fmt::format("parallel.pipeline {} divides", stages_)
                                  : stages_ == 1 ? fmt::format("parallel.tensor {} divides", shards)
                                                 : fmt::format("parallel.pipeline {} and parallel.tensor {} divide", stages_, shards),
                                  ranks, all.size(), all.size() == 1 ? "is" : "are",
                                  all.size() < ranks
                                      ? std::to_string(ranks)
                                      : fmt::format("{} or {}", all.size() / ranks * ranks, (all.size() / ranks + 1) * ranks)));
  alone_ = std::move(make_local_world().comm);
  if (ranks > 1) {
    stage_ = all.rank() % ranks / shards;
    replica_ = all.split([=](int r) { return r / ranks; }, "the parts of a replica");
    data_ = all.split([=](int r) { return r % ranks; }, "the exchange of gradients");
    if (stages_ > 1 && shards > 1) {
      pipeline_ = replica_->split([=](int r) { return r % shards; }, "the stages of a replica");
      shards_ = replica_->split([=](int r) { return r / shards; }, "the shards of layers");
    }
  }
  if (stages_ > 1) pipeline().link_neighbours();
  group_ = std::make_unique<ShardCommunicator>(shards == 1 ? *alone_ : shards_ ? *shards_ : *replica_);
}

}  // namespace starling
