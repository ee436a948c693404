#include "comm/cards.h"

#include "comm/nccl/nccl.h"

namespace starling {

void prepare_card_environment(const Communicator& comm, bool divided) { STARLING_CUDA::prepare_environment(comm, divided); }
CardConnection connect_cards_of_ranks(Communicator& comm, Memory& memory) { return STARLING_CUDA::connect_cards(comm, memory); }
std::string card_library_version() { return STARLING_CUDA::nccl_version(); }

}  // namespace starling
