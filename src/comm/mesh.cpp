#include "comm/mesh.h"

#include <algorithm>

#include "base/error.h"
#include "comm/world.h"

namespace starling {

Mesh::Mesh(Communicator& all, const ParallelOptions& o)
    : all_(all), stages_(static_cast<int>(o.pipeline)), time_pieces_(std::max<int64_t>(o.time_pieces, 1)) {
  const int ranks = static_cast<int>(o.ranks());
  if (all.size() % ranks != 0)
    throw ConfigError(fmt::format("parallel.pipeline {} divides the model among {} ranks, and {} {} no multiple of that; start {} ranks",
                                  o.pipeline, ranks, all.size(), all.size() == 1 ? "is" : "are",
                                  all.size() < ranks ? std::to_string(ranks)
                                                     : fmt::format("{} or {}", all.size() / ranks * ranks, (all.size() / ranks + 1) * ranks)));
  alone_ = std::move(make_local_world().comm);
  if (ranks == 1) return;
  stage_ = all.rank() % stages_;
  replica_ = all.split(all.rank() / ranks);
  data_ = all.split(all.rank() % ranks);
}

}  // namespace starling
