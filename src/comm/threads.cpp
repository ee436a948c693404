#include "comm/threads.h"

#include <algorithm>

#include "base/affinity.h"

namespace starling {

int threads_for_rank(Communicator& comm) {
  const std::vector<int> cores = usable_core_list();
  const std::vector<std::string> all = gather_texts(comm, fmt::format("{} {}", comm.host(comm.rank()), cores_text(cores)));
  const auto sharing = static_cast<int>(std::count(all.begin(), all.end(), all[static_cast<size_t>(comm.rank())]));
  return std::max(1, static_cast<int>(cores.size()) / sharing);
}

}  // namespace starling
