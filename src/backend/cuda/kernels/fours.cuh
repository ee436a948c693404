// Four neighbouring floats at a time, for what goes element by element through flat buffers.
#pragma once

#include <initializer_list>

#include "backend/cuda/kernels/device.cuh"

namespace starling::STARLING_CUDA::kernels {

constexpr int kFour = 4;

// Whether all addresses are multiples of 16 bytes; null counts as one.
inline bool whole_fours(std::initializer_list<const void*> addresses) {
  for (const void* p : addresses)
    if (reinterpret_cast<uintptr_t>(p) % 16 != 0) return false;
  return true;
}
// Calls f(w, begin) for this thread's elements, w = W of them, or one by one at the end, where fewer are left.
template <int W, class F>
__device__ __forceinline__ void for_several(int64_t count, F f) {
  const int64_t begin = global_thread() * W;
  if (begin + W <= count) return f(std::integral_constant<int, W>{}, begin);
  for (int64_t i = begin; i < count; ++i) f(std::integral_constant<int, 1>{}, i);
}
template <int W, class Task>
void launch_several(void (*kernel)(Task), const Task& t, int64_t count, int threads, cudaStream_t stream) {
  launch(kernel, blocks_for(count, int64_t{W} * threads), threads, 0, stream, t);
}

}  // namespace starling::STARLING_CUDA::kernels
