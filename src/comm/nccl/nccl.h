// Collectives of tensors that lie on NVIDIA cards, by NCCL (docs/gpu.md). Only its own files and no_nccl.cpp know whether the program was
// built with it.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"

#ifndef STARLING_CUDA
#define STARLING_CUDA cuda
#endif

namespace starling::STARLING_CUDA {

// Sets the environment variables that several ranks with cards need, unless the user has set them (docs/gpu.md). Must come before the first
// CUDA call. divided: each rank has a part of the model.
void prepare_environment(const Communicator& comm, bool divided);

struct CardConnection {
  std::string report;          // for the log: how tensors on cards travel, and why; "" if none have to
  std::shared_ptr<void> held;  // the cards stay connected while it lives
};
// Connects the cards of the ranks, each of which names the memory that its backend computes in; collectives of such tensors then go from
// card to card. They go through the hosts if that is impossible: without NCCL, if two ranks share a card, or if a rank has none. Blocking,
// collective. What `held` keeps must end before the communicator does. Throws PeerError if the cards cannot be connected.
CardConnection connect_cards(Communicator& comm, Memory& memory);

// "2.28.9", or "none".
std::string nccl_version();

}  // namespace starling::STARLING_CUDA
