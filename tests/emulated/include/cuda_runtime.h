// What kernels and the backend use of CUDA, on the processor: the same sources compile against this header in place of NVIDIA's. Threads of
// a block are fibers that run in a random order (emulator.h); work on streams is done when somebody waits for it (runtime.cpp). Everything
// is in a namespace, so that a program can have NVIDIA's as well.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#define STARLING_CUDA_EMULATED 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

namespace emulated_cuda {

// -- the language --------------------------------------------------------------------------------------------------------------------

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}  // NOLINT(google-explicit-constructor)
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

extern constinit thread_local uint3 threadIdx, blockIdx;
extern constinit thread_local dim3 blockDim, gridDim;
constexpr int warpSize = 32;

// The dynamic shared memory of the block; exactly as many bytes as the launch asked for.
void* shared_memory();
void __syncthreads();
void __syncwarp(unsigned mask = 0xffffffffu);
[[noreturn]] void __trap();
// Gives every lane of the mask what all lanes have brought; all of them must come, to the same kind of exchange.
const uint64_t* exchange(unsigned mask, uint64_t value, const char* kind);

template <class T>
inline uint64_t to_bits(T x) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}
template <class T>
inline T from_bits(uint64_t bits) {
  T x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline int lane_here() { return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32); }

template <class T>
T __shfl_sync(unsigned mask, T x, int source, int width = 32) {
  const uint64_t* all = exchange(mask, to_bits(x), "__shfl_sync");
  return from_bits<T>(all[lane_here() / width * width + (source % width + width) % width]);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T x, int lanes, int width = 32) {
  const uint64_t* all = exchange(mask, to_bits(x), "__shfl_xor_sync");
  const int from = lane_here() ^ lanes;
  return from_bits<T>(all[from / width <= lane_here() / width ? from : lane_here()]);
}
template <class T>
T __shfl_up_sync(unsigned mask, T x, unsigned lanes, int width = 32) {
  const uint64_t* all = exchange(mask, to_bits(x), "__shfl_up_sync");
  const int lane = lane_here(), from = lane - static_cast<int>(lanes);
  return from_bits<T>(all[from >= lane / width * width ? from : lane]);
}
template <class T>
T __shfl_down_sync(unsigned mask, T x, unsigned lanes, int width = 32) {
  const uint64_t* all = exchange(mask, to_bits(x), "__shfl_down_sync");
  const int lane = lane_here(), from = lane + static_cast<int>(lanes);
  return from_bits<T>(all[from < (lane / width + 1) * width ? from : lane]);
}
unsigned __ballot_sync(unsigned mask, int predicate);
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }

// PTX's cvt.rn.bf16x2.f32: rounds to nearest with ties to even, the first number into the upper half. Every NaN becomes 0x7fff.
inline uint32_t cvt_rn_bf16x2_f32(float high, float low) {
  const auto rounded = [](float x) {
    const auto bits = static_cast<uint32_t>(to_bits(x));
    return x == x ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : 0x7fffu;
  };
  return rounded(high) << 16 | rounded(low);
}

// -- tensor cores: the fragments of PTX's mma.m16n8k16 and ldmatrix ---------------------------------------------------------------------
inline float bf16_at(uint64_t words, int index) { return from_bits<float>(static_cast<unsigned>(words >> (16 * index)) << 16); }
// c [16, 8] += a [16, 16] b [16, 8]. All lanes must come.
inline void mma_m16n8k16_bf16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  uint64_t rows[2][32], columns[32];  // of a: the lanes' words of rows 0 to 7 and 8 to 15; exchanges are kept for one more only
  for (int half = 0; half < 2; ++half)
    std::memcpy(rows[half], exchange(0xffffffffu, a[half] | uint64_t{a[half + 2]} << 32, "mma.sync"), sizeof rows[half]);
  std::memcpy(columns, exchange(0xffffffffu, b0 | uint64_t{b1} << 32, "mma.sync"), sizeof columns);
  const int lane = lane_here();
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4, column = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 16; ++k)
      c[i] += bf16_at(rows[i / 2][row * 4 + k % 8 / 2], k % 2 + k / 8 * 2) * bf16_at(columns[column * 4 + k % 8 / 2], k % 2 + k / 8 * 2);
  }
}
// Four tiles [8, 8] of 16-bit elements in shared memory; lane 8 i + r gives row r of tile i, at a multiple of 16 bytes.
template <bool turned>
inline void ldmatrix_x4(uint32_t (&x)[4], const uint16_t* row) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != reinterpret_cast<uintptr_t>(shared_memory()) % 16) __trap();
  const uint64_t* all = exchange(0xffffffffu, reinterpret_cast<uint64_t>(row), "ldmatrix");
  const int lane = lane_here(), across = lane % 4 * 2, down = lane / 4;
  const auto element = [&](int tile, int r, int c) { return reinterpret_cast<const uint16_t*>(all[8 * tile + r])[c]; };
  for (int i = 0; i < 4; ++i)
    x[i] = turned ? element(i, across, down) | uint32_t{element(i, across + 1, down)} << 16
                  : element(i, down, across) | uint32_t{element(i, down, across + 1)} << 16;
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t{a} * b >> 32); }
inline float __uint_as_float(unsigned x) { return from_bits<float>(x); }
inline unsigned __float_as_uint(float x) { return static_cast<unsigned>(to_bits(x)); }
inline int __float_as_int(float x) { return static_cast<int>(to_bits(x)); }
inline long long __double_as_longlong(double x) { return static_cast<long long>(to_bits(x)); }
inline float __int_as_float(int x) { return from_bits<float>(static_cast<unsigned>(x)); }
// Products and sums that the compiler does not join.
float __fmul_rn(float a, float b);
float __fadd_rn(float a, float b);
float __fsub_rn(float a, float b);
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
double __dmul_rn(double a, double b);
double __dadd_rn(double a, double b);
double __dsub_rn(double a, double b);
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
template <class T>
inline T __ldg(const T* p) {
  return *p;
}
template <class T>
inline T atomicAdd(T* p, T x) {
  static_assert(!std::is_floating_point_v<T>, "sums of floats in no fixed order");
  const T before = *p;
  *p = before + x;
  return before;
}
template <class T>
inline T atomicMax(T* p, T x) {
  const T before = *p;
  if (x > before) *p = x;
  return before;
}
template <class T>
inline T atomicMin(T* p, T x) {
  const T before = *p;
  if (x < before) *p = x;
  return before;
}

// -- the runtime ---------------------------------------------------------------------------------------------------------------------

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNotReady = 600,
  cudaErrorLaunchFailure = 719
};
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
struct cudaFuncAttributes {
  size_t sharedSizeBytes;  // of shared memory that is not dynamic: none, on emulated cards
};
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4, cudaMemPoolAttrReservedMemCurrent = 5, cudaMemPoolAttrUsedMemCurrent = 7 };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
struct Stream;
struct Event;
using cudaStream_t = Stream*;
using cudaEvent_t = Event*;
using cudaMemPool_t = struct Pool*;
struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  int major, minor, multiProcessorCount;
  size_t totalGlobalMem, sharedMemPerBlockOptin;
};

const char* cudaGetErrorName(cudaError_t);
const char* cudaGetErrorString(cudaError_t);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaMallocAsync(void** at, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void* at, cudaStream_t stream);
cudaError_t cudaMallocHost(void** at, size_t bytes);
cudaError_t cudaFreeHost(void* at);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t stream);
// cudaErrorInvalidValue where a task has an address of the host's.
cudaError_t check_task(const void* task, size_t bytes);
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int bytes);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void* kernel);
cudaError_t enqueue_kernel(const void* kernel, std::function<void()> thread, dim3 grid, dim3 block, size_t shared, cudaStream_t stream);

// Of kernels with one argument.
template <class Task>
cudaError_t cudaLaunchKernel(void (*kernel)(Task), dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream) {
  auto task = *static_cast<std::remove_const_t<Task>*>(arguments[0]);
  __builtin_clear_padding(&task);
  if (const cudaError_t bad = check_task(&task, sizeof task); bad != cudaSuccess) return bad;
  return enqueue_kernel(
      reinterpret_cast<const void*>(kernel), [kernel, task] { kernel(task); }, grid, block, shared, stream);
}

}  // namespace emulated_cuda

using namespace emulated_cuda;  // NOLINT(google-build-using-namespace)
