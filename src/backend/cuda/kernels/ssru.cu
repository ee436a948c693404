// Simpler Simple Recurrent Units, one thread per sentence and column.
#include "backend/cuda/kernels/device.cuh"
#include "backend/cuda/kernels/recurrent.h"

namespace starling::STARLING_CUDA::kernels {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ float open_gate(float x) { return 1 / (1 + expf(-x)); }

template <class T>
__global__ void ssru_kernel(Ssru t) {
  const int64_t b = global_thread() / t.width, c = global_thread() % t.width;
  if (b >= t.sentences) return;
  float cell = t.before ? t.before[b * t.width + c] : 0.0f;
  for (int64_t n = t.offsets[b]; n < t.offsets[b + 1]; ++n) {
    const int64_t at = n * t.width + c;
    const float f = open_gate(widen(static_cast<const T*>(t.forget)[at]));
    cell = f * cell + (1 - f) * widen(static_cast<const T*>(t.candidate)[at]);
    t.cell[at] = cell;
    static_cast<T*>(t.hidden)[at] = narrow<T>(cell > 0 ? cell : 0.0f);
  }
}

template <class T>
__global__ void ssru_backward_kernel(SsruBackward t) {
  const int64_t b = global_thread() / t.width, c = global_thread() % t.width;
  if (b >= t.sentences) return;
  float dcell = 0;  // from the next row
  for (int64_t n = t.offsets[b + 1] - 1; n >= t.offsets[b]; --n) {
    const int64_t at = n * t.width + c;
    const float f = open_gate(widen(static_cast<const T*>(t.forget)[at])), before = n > t.offsets[b] ? t.cell[at - t.width] : 0.0f;
    if (t.cell[at] > 0) dcell += widen(static_cast<const T*>(t.dhidden)[at]);
    static_cast<T*>(t.dcandidate)[at] = narrow<T>(dcell * (1 - f));
    static_cast<T*>(t.dforget)[at] = narrow<T>(dcell * (before - widen(static_cast<const T*>(t.candidate)[at])) * f * (1 - f));
    dcell *= f;
  }
}

}  // namespace

void ssru(Type type, const Ssru& t, cudaStream_t stream) {
  by_type(type, [&](auto e) { launch(ssru_kernel<decltype(e)>, blocks_for(t.sentences * t.width, kThreads), kThreads, 0, stream, t); });
}
void ssru_backward(Type type, const SsruBackward& t, cudaStream_t stream) {
  by_type(type,
          [&](auto e) { launch(ssru_backward_kernel<decltype(e)>, blocks_for(t.sentences * t.width, kThreads), kThreads, 0, stream, t); });
}

}  // namespace starling::STARLING_CUDA::kernels
