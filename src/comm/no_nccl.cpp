// Replaces nccl/ if the program was built without it.
#include <fmt/format.h>

#include <algorithm>

#include "comm/nccl/nccl.h"

namespace starling::STARLING_CUDA {

void prepare_environment(const Communicator&, bool) {}

CardConnection connect_cards(Communicator& comm, Memory& memory) {
  if (comm.size() == 1) return {};
  // Ranks of a build with NCCL ask the same: which card, and which version.
  const std::vector<std::string> cards = gather_texts(comm, memory.host() ? "" : fmt::format("the card of rank {}", comm.rank()));
  gather_texts(comm, nccl_version());
  if (std::all_of(cards.begin(), cards.end(), [](const std::string& card) { return card.empty(); })) return {};
  return {"this program was built without NCCL: gradients on cards go through the hosts' memory and MPI (docs/guides/gpu.md)", {}};
}

std::string nccl_version() { return "none"; }
bool nccl_was_ended() { return false; }

}  // namespace starling::STARLING_CUDA
