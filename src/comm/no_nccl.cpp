// In the place of nccl/ where the program was built without it.
#include "comm/nccl/nccl.h"

namespace starling::STARLING_CUDA {

CardConnection connect_cards(Communicator& comm, Memory& memory) {
  if (comm.size() == 1 || memory.host()) return {};
  return {"this program was built without NCCL: gradients on cards go through the hosts' memory and MPI (docs/gpu.md)", {}};
}

std::string nccl_version() { return "none"; }

}  // namespace starling::STARLING_CUDA
