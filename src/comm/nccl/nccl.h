// Collectives of tensors that lie on NVIDIA cards, by NCCL (docs/guides/gpu.md). Only its own files and no_nccl.cpp know whether the
// program was built with it.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"

#ifndef STARLING_CUDA
#define STARLING_CUDA cuda
#endif

namespace starling::STARLING_CUDA {

// Sets what several ranks with cards need in this process's environment, where the user has set nothing (docs/guides/gpu.md). Before the
// first call of CUDA; divided: each rank has a part of the model.
void prepare_environment(const Communicator& comm, bool divided);

struct CardConnection {
  std::string report;          // for the log: what carries tensors of cards, and why; "" where nothing needs to
  std::shared_ptr<void> held;  // while it lives, the cards are connected
};
// Connects the cards of the ranks, each of which names the memory that its backend computes in: collectives of such tensors go from card to
// card then. They go through the hosts where that cannot be: without NCCL, with two ranks on a card or with ranks without one. Blocking,
// collective. What is held must end before the communicator does. PeerError if the cards cannot be connected.
CardConnection connect_cards(Communicator& comm, Memory& memory);

// "2.28.9", or "none".
std::string nccl_version();

}  // namespace starling::STARLING_CUDA
