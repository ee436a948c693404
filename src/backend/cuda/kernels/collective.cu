// One thread per element.
#include "backend/cuda/kernels/collective.h"
#include "backend/cuda/kernels/device.cuh"

namespace starling::STARLING_CUDA::kernels {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ float sum(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ double sum(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ int32_t sum(int32_t a, int32_t b) { return a + b; }
__device__ __forceinline__ Bf16 sum(Bf16 a, Bf16 b) { return narrow<Bf16>(__fadd_rn(widen(a), widen(b))); }
template <class T>
__device__ __forceinline__ bool greater(T a, T b) {
  return a > b;
}
__device__ __forceinline__ bool greater(Bf16 a, Bf16 b) { return widen(a) > widen(b); }

template <class T>
__global__ void add_kernel(Combine t) {
  const int64_t i = global_thread();
  T* const y = static_cast<T*>(t.y);
  if (i < t.count) y[i] = sum(y[i], static_cast<const T*>(t.x)[i]);
}
template <class T>
__global__ void maximum_kernel(Combine t) {
  const int64_t i = global_thread();
  T* const y = static_cast<T*>(t.y);
  if (i >= t.count) return;
  const T x = static_cast<const T*>(t.x)[i];
  if (greater(x, y[i])) y[i] = x;
}
__global__ void add_widened_kernel(Combine t) {
  const int64_t i = global_thread();
  float* const y = static_cast<float*>(t.y);
  if (i < t.count) y[i] = __fadd_rn(y[i], widen(static_cast<const Bf16*>(t.x)[i]));
}

template <class F>
void by_element(Element e, F f) {
  switch (e) {
    case Element::f32:
      return f(float{});
    case Element::f64:
      return f(double{});
    case Element::i32:
      return f(int32_t{});
    case Element::bf16:
      return f(Bf16{});
  }
}

}  // namespace

void add_elements(Element e, const Combine& t, cudaStream_t stream) {
  by_element(e, [&](auto x) { launch(add_kernel<decltype(x)>, blocks_for(t.count, kThreads), kThreads, 0, stream, t); });
}
void maximum_elements(Element e, const Combine& t, cudaStream_t stream) {
  by_element(e, [&](auto x) { launch(maximum_kernel<decltype(x)>, blocks_for(t.count, kThreads), kThreads, 0, stream, t); });
}
void add_widened(const Combine& t, cudaStream_t stream) {
  launch(add_widened_kernel, blocks_for(t.count, kThreads), kThreads, 0, stream, t);
}

}  // namespace starling::STARLING_CUDA::kernels
