// What the launchers of all kernels share. Kernels see neither Tensor nor fmt: a task is plain numbers and addresses in the card's memory.
// A launcher (NAME(type, task, stream)) puts a kernel on a stream and returns; it does nothing for a task without rows.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// The namespace of this backend; the tests compile it a second time, for emulated cards.
#ifndef STARLING_CUDA
#define STARLING_CUDA cuda
#endif

namespace starling::STARLING_CUDA {

// Throws Error if a call failed; `what` says what was tried.
void check(cudaError_t result, const char* what);

namespace kernels {

// Lets blocks of a kernel use as much dynamic shared memory as the card has. The limit belongs to the kernel, not to the launch, so it is
// not set to what one launch needs: another thread may launch the kernel with more.
void allow_shared_memory(const void* kernel);

// The type of activations.
enum class Type : uint8_t { f32, bf16 };

// backend/dropout.h; threshold 0: no dropout.
struct Mask {
  uint64_t key = 0;
  uint32_t threshold = 0;
  float scale = 1;
  const uint32_t *sentence = nullptr, *position = nullptr;  // [N]
  int64_t first_column = 0;
};

}  // namespace kernels
}  // namespace starling::STARLING_CUDA
