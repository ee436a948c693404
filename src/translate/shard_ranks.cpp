#include "translate/shard_ranks.h"

#include "base/error.h"
#include "comm/threads.h"

namespace starling {

ShardRanks::ShardRanks(int64_t shards, const std::function<World()>& join) {
  if (shards == 1) return;
  world_.emplace(join());
  if (comm().size() != shards)
    throw ConfigError(fmt::format("--parallel.tensor {} divides the model among {} ranks, and {} {} started; start it with mpirun -n {}",
                                  shards, shards, comm().size(), comm().size() == 1 ? "was" : "were", shards));
  comm().set_deadline(kNoDeadline);  // the first rank waits for its input
  group_.emplace(comm());
}

int ShardRanks::threads_of_rank() { return threads_for_rank(comm()); }

ModelDescription ShardRanks::describe(FileSystem& files, const std::string& path, DeviceChoice& choice) {
  if (!world_) return describe_model(files, path);
  std::optional<ModelDescription> own;
  if (first()) {
    own.emplace(describe_model(files, path));
    choice = resolve(choice, own->quantized, world_->local_rank);
  }
  choice.precision = broadcast_text(comm(), choice.precision);
  const std::string directory = broadcast_text(comm(), own ? own->directory : ""),
                    step = broadcast_text(comm(), own ? std::to_string(own->step) : "");
  if (!own) own.emplace(read_description(files, directory));
  for (const std::string& each : gather_texts(comm(), std::to_string(own->step)))
    if (each != step) throw DataError(fmt::format("{}: the model was replaced while the ranks were reading it; start again", directory));
  return std::move(*own);
}

std::vector<std::string> ShardRanks::lines(const std::function<std::vector<std::string>()>& take) {
  if (!world_) return take();
  std::string text;
  if (first())
    for (const std::string& line : take()) text += line + "\n";
  text = broadcast_text(comm(), text);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) lines.push_back(text.substr(at, text.find('\n', at) - at));
  return lines;
}

}  // namespace starling
