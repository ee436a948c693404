// Collectives of tensors that lie on NVIDIA cards, by NCCL (docs/guides/gpu.md). Only its own files and no_nccl.cpp know whether the
// program was built with it.
#pragma once

#include <string>

#include "comm/cards.h"
#include "comm/communicator.h"

#ifndef STARLING_CUDA
#define STARLING_CUDA cuda
#endif

namespace starling::STARLING_CUDA {

// As in comm/cards.h, through which other folders call them.
void prepare_environment(const Communicator& comm, bool divided);
CardConnection connect_cards(Communicator& comm, Memory& memory);
std::string nccl_version();
// Whether work of NCCL has been ended in this process before it was over. Some versions free what belongs to it in a thread of their own,
// for which nobody can wait: the communicators are gone.
bool nccl_was_ended();
// Returns why NCCL of a version (22809: 2.28.9) cannot serve a card that belongs to so many groups; "" if it can.
std::string why_too_old(int version, int64_t groups);

}  // namespace starling::STARLING_CUDA
