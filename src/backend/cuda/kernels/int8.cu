#include "backend/cuda/kernels/device.cuh"
#include "backend/cuda/kernels/int8.h"

namespace starling::STARLING_CUDA::kernels {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;

__device__ __forceinline__ float quantized(float x, float bound) {
  if (!(bound > 0)) return 0;
  const float q = rintf(127.0f * x / bound);
  return q > 127 ? 127.0f : q < -127 ? -127.0f : q;
}

// One warp per output.
template <class T>
__global__ void quantize_weight_kernel(QuantizeWeight t) {
  const int64_t o = global_thread() / kWarp;
  if (o >= t.out) return;
  const int64_t first = t.transposed ? o * t.in : o, step = t.transposed ? 1 : t.out;
  float most = 0;
  for (int64_t i = lane(); i < t.in; i += kWarp) most = fmaxf(most, fabsf(t.w[first + i * step]));
  most = warp_reduce(most, Largest{});
  if (lane() == 0) t.scales[o] = most;
  for (int64_t i = lane(); i < t.in; i += kWarp)
    static_cast<T*>(t.integers)[first + i * step] = narrow<T>(quantized(t.w[first + i * step], most));
}

template <class T>
__global__ void quantize_rows_kernel(QuantizeRows t) {
  const int64_t n = global_thread() / kWarp;
  if (n >= t.rows) return;
  const T* const x = static_cast<const T*>(t.x) + n * t.columns;
  float bound = t.input_bound;
  if (bound == 0) {
    for (int64_t c = lane(); c < t.columns; c += kWarp) bound = fmaxf(bound, fabsf(widen(x[c])));
    bound = warp_reduce(bound, Largest{});
  }
  if (lane() == 0) t.bounds[n] = bound;
  for (int64_t c = lane(); c < t.columns; c += kWarp)
    static_cast<T*>(t.integers)[n * t.columns + c] = narrow<T>(quantized(widen(x[c]), bound));
}

template <class T>
__global__ void scale_sums_kernel(ScaleSums t) {
  const int64_t i = global_thread(), n = i / t.columns, c = i % t.columns;
  if (n >= t.rows) return;
  float y = t.sums[i] * (t.bounds[n] * t.scales[c] / (127.0f * 127.0f)) + (t.bias ? t.bias[c] : 0.0f);
  if (t.relu && y < 0) y = 0;
  T& to = static_cast<T*>(t.y)[i];
  to = narrow<T>(t.accumulate ? widen(to) + y : y);
}

}  // namespace

void quantize_weight(Type type, const QuantizeWeight& t, cudaStream_t stream) {
  by_type(type, [&](auto e) { launch(quantize_weight_kernel<decltype(e)>, blocks_for(t.out, kWarps), kThreads, 0, stream, t); });
}
void quantize_rows(Type type, const QuantizeRows& t, cudaStream_t stream) {
  by_type(type, [&](auto e) { launch(quantize_rows_kernel<decltype(e)>, blocks_for(t.rows, kWarps), kThreads, 0, stream, t); });
}
void scale_sums(Type type, const ScaleSums& t, cudaStream_t stream) {
  by_type(type, [&](auto e) { launch(scale_sums_kernel<decltype(e)>, blocks_for(t.rows * t.columns, kThreads), kThreads, 0, stream, t); });
}

}  // namespace starling::STARLING_CUDA::kernels
