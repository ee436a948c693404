// Steps of LSTM layers, one thread per element.
#include "backend/cuda/kernels/device.cuh"
#include "backend/cuda/kernels/recurrent.h"

namespace starling::STARLING_CUDA::kernels {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }

// Cells in either of their forms.
__device__ __forceinline__ float cell_at(const float* cells, int64_t i, float) { return cells[i]; }
__device__ __forceinline__ float cell_at(const int16_t* cells, int64_t i, float bound) {
  return static_cast<float>(cells[i]) * (bound / 32767);
}
__device__ __forceinline__ void put_cell(float* cells, int64_t i, float x, float) { cells[i] = x; }
__device__ __forceinline__ void put_cell(int16_t* cells, int64_t i, float x, float bound) {
  cells[i] = static_cast<int16_t>(rintf(x * (32767 / bound)));
}

template <class T, class Cell>
__global__ void lstm_step_kernel(LstmStep t) {
  const int64_t at = global_thread(), H = t.width;
  int clipped = 0;
  if (at < t.rows * H) {
    const int64_t r = at / H, c = at % H;
    T* const gates = static_cast<T*>(t.gates) + r * 4 * H + c;
    float i = widen(gates[0]), f = widen(gates[H]), g = widen(gates[2 * H]), o = widen(gates[3 * H]), before = 0;
    if (r < t.past) {
      const float* const z = t.recurrent + r * 4 * H + c;
      i += z[0];
      f += z[H];
      g += z[2 * H];
      o += z[3 * H];
      before = cell_at(static_cast<const Cell*>(t.cell_before), at, t.bound);
    }
    i = sigmoid(i);
    f = sigmoid(f);
    g = tanhf(g);
    o = sigmoid(o);
    float cell = f * before + i * g;
    if (t.bound > 0 && fabsf(cell) > t.bound) {
      cell = copysignf(t.bound, cell);
      clipped = 1;
    }
    gates[0] = narrow<T>(i);
    gates[H] = narrow<T>(f);
    gates[2 * H] = narrow<T>(g);
    gates[3 * H] = narrow<T>(o);
    put_cell(static_cast<Cell*>(t.cell), at, cell, t.bound);
    static_cast<T*>(t.hidden)[at] = narrow<T>(o * (t.tanh_output ? tanhf(cell) : cell));
  }
  if (t.parts == nullptr) return;
  clipped = block_reduce(clipped, Sum{}, shared<int>());
  if (threadIdx.x == 0) t.parts[blockIdx.x] = clipped;
}

template <class T>
__global__ void lstm_step_backward_kernel(LstmStepBackward t) {
  const int64_t at = global_thread(), H = t.width;
  if (at >= t.rows * H) return;
  const int64_t r = at / H, c = at % H;
  T* const gates = static_cast<T*>(t.gates) + r * 4 * H + c;
  const float i = widen(gates[0]), f = widen(gates[H]), g = widen(gates[2 * H]), o = widen(gates[3 * H]);
  const float cell = t.cell[at], before = r < t.past ? t.cell_before[at] : 0;
  const float squashed = t.tanh_output ? tanhf(cell) : cell;
  const float dh = widen(static_cast<const T*>(t.dhidden)[at]) + (r < t.next ? t.drecurrent[at] : 0);
  float dc = dh * o * (t.tanh_output ? 1 - squashed * squashed : 1) + (r < t.next ? t.dcell[at] : 0);
  if (t.bound > 0 && fabsf(cell) >= t.bound) dc = 0;
  gates[0] = narrow<T>(dc * g * i * (1 - i));
  gates[H] = narrow<T>(dc * before * f * (1 - f));
  gates[2 * H] = narrow<T>(dc * i * (1 - g * g));
  gates[3 * H] = narrow<T>(dh * squashed * o * (1 - o));
  t.dcell[at] = dc * f;
}

}  // namespace

int64_t lstm_parts(int64_t elements) { return blocks_for(elements, kThreads); }
void lstm_step(Type type, const LstmStep& t, cudaStream_t stream) {
  constexpr int64_t kShared = kThreads / kWarp * sizeof(int);
  by_type(type, [&](auto e) {
    using T = decltype(e);
    launch(t.narrow_cell ? lstm_step_kernel<T, int16_t> : lstm_step_kernel<T, float>, lstm_parts(t.rows * t.width), kThreads, kShared,
           stream, t);
  });
}
void lstm_step_backward(Type type, const LstmStepBackward& t, cudaStream_t stream) {
  by_type(type,
          [&](auto e) { launch(lstm_step_backward_kernel<decltype(e)>, blocks_for(t.rows * t.width, kThreads), kThreads, 0, stream, t); });
}

}  // namespace starling::STARLING_CUDA::kernels
