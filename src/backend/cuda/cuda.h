// The CUDA backend (docs/guides/gpu.md). Only its own files and no_cuda.cpp know whether the program was built with it.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "backend/backend.h"

#ifndef STARLING_CUDA
#define STARLING_CUDA cuda
#endif

namespace starling {

// The bytes of logits that the loss holds at once on a card with this much memory. Each chunk of rows reads the output's weights twice, and
// reads and writes their gradient: therefore few chunks and large products.
constexpr int64_t card_logits_bytes(int64_t memory) { return std::clamp(memory / 64, int64_t{32} << 20, int64_t{512} << 20); }

}  // namespace starling

namespace starling::STARLING_CUDA {

// Makes a backend on the card of this number, with activations in f32 or bf16. Throws ConfigError if there is no such card, or no CUDA in
// the build.
std::unique_ptr<Backend> make_cuda_backend(int device, DType activation);

// Whether the program was built with CUDA.
bool has_cuda();
// The number of cards this process can use; 0 also if the build has no CUDA or the machine no cuBLASLt.
int cuda_devices();
// The names and memory of the cards, the driver and the libraries; or why none can be used, and how to change that.
std::string describe_cuda();
// The bytes that this process has taken from a card's pool: unlike what is free, other processes do not change them.
int64_t bytes_taken(const Memory& card);

}  // namespace starling::STARLING_CUDA
