#include "comm/cards.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "comm/nccl/nccl.h"

namespace starling {

void prepare_card_environment(const Communicator& comm, bool divided) { STARLING_CUDA::prepare_environment(comm, divided); }
CardConnection connect_cards_of_ranks(Communicator& comm, Memory& memory) { return STARLING_CUDA::connect_cards(comm, memory); }
void leave_if_cards_may_be_busy(int status) {
  if (!STARLING_CUDA::nccl_was_ended()) return;
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(status);
}
std::string card_library_version() { return STARLING_CUDA::nccl_version(); }

}  // namespace starling
