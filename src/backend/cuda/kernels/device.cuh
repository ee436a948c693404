// The building blocks of kernels. Reductions have a fixed order, which depends only on the block size. Shared memory is dynamic, so that
// the emulator sees its ends. Grids have one dimension: at most 2^31 - 1 blocks.
#pragma once

#include <cfloat>
#include <cmath>
#include <type_traits>

#include "backend/cuda/kernels/tasks.h"
#include "backend/dropout.h"

namespace starling::STARLING_CUDA::kernels {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

struct Bf16 {
  uint16_t bits;
};

__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ float widen(Bf16 x) { return __uint_as_float(uint32_t{x.bits} << 16); }
// Rounds two floats to bf16, to nearest with ties to even, the first into the lower half. Every NaN becomes 0x7fff; else the bits are those
// of the processor's rounding.
__device__ __forceinline__ uint32_t pair_of(float low, float high) {
#ifdef STARLING_CUDA_EMULATED
  return cvt_rn_bf16x2_f32(high, low);
#else
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#endif
}
__device__ __forceinline__ uint16_t bf16_bits(float x) { return static_cast<uint16_t>(pair_of(x, 0.0f)); }
template <class T>
__device__ __forceinline__ T narrow(float x) {
  if constexpr (std::is_same_v<T, float>)
    return x;
  else
    return T{bf16_bits(x)};
}

// W neighbouring elements, read or written by one instruction; their address is a multiple of their size.
template <class T, int W>
struct alignas(sizeof(T) * W) Several {
  T at[W];
};
// Of all, in pairs where there are pairs.
template <class T, int W>
__device__ __forceinline__ Several<T, W> narrow_all(const Several<float, W>& x) {
  Several<T, W> y;
  if constexpr (std::is_same_v<T, float>) {
    y = x;
  } else if constexpr (W % 2 == 0) {
#pragma unroll
    for (int i = 0; i < W; i += 2) {
      const uint32_t pair = pair_of(x.at[i], x.at[i + 1]);
      y.at[i].bits = static_cast<uint16_t>(pair);
      y.at[i + 1].bits = static_cast<uint16_t>(pair >> 16);
    }
  } else {
#pragma unroll
    for (int i = 0; i < W; ++i) y.at[i] = narrow<T>(x.at[i]);
  }
  return y;
}
template <int W, class T>
__device__ __forceinline__ Several<T, W> load(const T* p) {
  return *reinterpret_cast<const Several<T, W>*>(p);
}
template <int W, class T>
__device__ __forceinline__ void store(T* p, const Several<T, W>& x) {
  *reinterpret_cast<Several<T, W>*>(p) = x;
}

// Calls f(T{}) with the element type.
template <class F>
void by_type(Type type, F f) {
  if (type == Type::f32)
    f(float{});
  else
    f(Bf16{});
}

inline int64_t blocks_for(int64_t n, int64_t each) { return (n + each - 1) / each; }

// kernel<<<blocks, threads, shared, stream>>>(task)
template <class Task>
void launch(void (*kernel)(Task), int64_t blocks, int threads, int64_t shared, cudaStream_t stream, Task task) {
  if (blocks == 0) return;
  if (shared > 48 << 10) allow_shared_memory(reinterpret_cast<const void*>(kernel));
  void* arguments[] = {&task};
  check(blocks < (int64_t{1} << 31) ? cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)),
                                                       arguments, static_cast<size_t>(shared), stream)
                                    : cudaErrorInvalidConfiguration,
        "a kernel's launch");
}

// The block's dynamic shared memory, 16-byte aligned.
template <class T>
__device__ __forceinline__ T* shared() {
#ifdef STARLING_CUDA_EMULATED
  return static_cast<T*>(shared_memory());
#else
  extern __shared__ __align__(16) unsigned char starling_shared[];
  return reinterpret_cast<T*>(starling_shared);
#endif
}

// The number of this thread in the grid.
__device__ __forceinline__ int64_t global_thread() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x % kWarp); }
__device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x / kWarp); }

// -- reductions; every lane, or every thread of the block, gets the result ------------------------------------------------------------
struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Largest {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
template <class T, class Op>
__device__ __forceinline__ T warp_reduce(T x, Op op) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) x = op(x, __shfl_xor_sync(kAllLanes, x, step));
  return x;
}
// scratch: one T per warp in shared memory, which may be reused afterwards. All threads of the block must call it.
template <class T, class Op>
__device__ __forceinline__ T block_reduce(T x, Op op, T* scratch) {
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  x = warp_reduce(x, op);
  if (warps == 1) return x;
  if (lane() == 0) scratch[warp()] = x;
  __syncthreads();
  x = scratch[lane() < warps ? lane() : 0];
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const T other = __shfl_down_sync(kAllLanes, x, step);
    if (lane() + step < warps) x = op(x, other);
  }
  x = __shfl_sync(kAllLanes, x, 0);
  __syncthreads();
  return x;
}

// Makes *to, which must not be negative, at least x: nonnegative numbers have the order of their bits.
__device__ __forceinline__ void raise_to(double* to, double x) {
  atomicMax(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(__double_as_longlong(x)));
}

// -- dropout masks ---------------------------------------------------------------------------------------------------------------------
// A row is cut into stretches of 128 columns. Sixteen threads share one: each has the columns c, c + 16, ... c + 112, which one random
// block serves, so that sixteen neighbours read and write sixteen neighbouring elements.
constexpr int kStretch = 128, kStretchThreads = 16;

// Calls f(h, column, factor), h = 0 ... 7, for those of the `columns` columns of row n that this thread has in a stretch (of the site,
// which begins mask.first_column columns before the row here).
template <class F>
__device__ __forceinline__ void for_masked_columns(const Mask& mask, int64_t n, int64_t stretch, int part, int64_t columns, F f) {
  uint32_t words[4] = {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu};
  if (mask.threshold > 0)
    dropout_words(mask.key, mask.sentence[n], mask.position[n], static_cast<uint32_t>(stretch * kStretchThreads + part), words);
#pragma unroll
  for (int h = 0; h < 8; ++h) {
    const int64_t c = stretch * kStretch + h * kStretchThreads + part - mask.first_column;
    const uint32_t bits = words[h / 2] >> (16 * (h % 2)) & 0xffffu;
    if (c >= 0 && c < columns) f(h, c, bits >= mask.threshold ? mask.scale : 0.0f);
  }
}
// The stretches that hold a row's columns: [first, first + count).
struct Stretches {
  int64_t first, count;
};
inline Stretches stretches_of(const Mask& mask, int64_t columns) {
  const int64_t first = mask.first_column / kStretch;
  return {first, (mask.first_column + columns + kStretch - 1) / kStretch - first};
}

}  // namespace starling::STARLING_CUDA::kernels
