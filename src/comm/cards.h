// Prepares and connects the cards of a run's ranks, with the implementation that the program has: NCCL (nccl/), none (no_nccl.cpp), or the
// tests' emulated cards.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"

namespace starling {

struct CardConnection {
  std::string report;          // for the log: how tensors on cards travel, and why; "" if none have to
  std::shared_ptr<void> held;  // the cards stay connected while it lives
};

// Sets the environment variables that several ranks with cards need, unless the user has set them (docs/guides/gpu.md). Must come before
// the first CUDA call. divided: each rank has a part of the model.
void prepare_card_environment(const Communicator& comm, bool divided);

// Connects the cards of the ranks, each of which names the memory that its backend computes in; collectives of such tensors then go from
// card to card. They go through the hosts if that is impossible: without NCCL, if two ranks share a card, or if a rank has none. Blocking,
// collective. What `held` keeps must end before the communicator does. Throws PeerError if the cards cannot be connected.
CardConnection connect_cards_of_ranks(Communicator& comm, Memory& memory);

// Ends the process with this status if NCCL's work was ended before it was over: a thread of NCCL's may still free what belongs to it, and
// would crash when exit() takes the driver from it. Output is flushed. Else returns.
void leave_if_cards_may_be_busy(int status);

// "2.28.9", or "none".
std::string card_library_version();

}  // namespace starling
