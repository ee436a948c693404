// These kernels wait for memory: a thread has four neighbouring elements, read and written by one instruction each, where all arrays are
// aligned to that, and the same formula for each.
#include "backend/cuda/kernels/fours.cuh"
#include "backend/cuda/kernels/optimizer_steps.h"

namespace starling::STARLING_CUDA::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kEach = 8192;  // elements whose squares one block adds up

__global__ void squares_kernel(Squares t) {
  double sum = 0;
  const int64_t begin = blockIdx.x * kEach, end = begin + kEach < t.count ? begin + kEach : t.count;
#pragma unroll 8
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) sum += static_cast<double>(t.x[i]) * static_cast<double>(t.x[i]);
  sum = block_reduce(sum, Sum{}, shared<double>());
  if (threadIdx.x == 0) t.parts[blockIdx.x] = sum;
}
__global__ void add_squares_kernel(Squares t) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i * kEach < t.count; i += blockDim.x) sum += t.parts[i];
  sum = block_reduce(sum, Sum{}, shared<double>());
  if (threadIdx.x == 0) *t.sum += sum;
}

template <class Step>
struct StepTask {
  StepTensors at;
  typename Step::F32 step;
  int64_t count;
};
// Elements [begin, begin + W).
template <int W, class Step>
__device__ __forceinline__ void step_several(const StepTask<Step>& t, int64_t begin) {
  constexpr int n = Step::kStates;
  Several<float, W> x = load<W>(t.at.value + begin), states[n > 0 ? n : 1];
  const Several<float, W> gradient = load<W>(t.at.gradient + begin);
#pragma unroll
  for (int k = 0; k < n; ++k) states[k] = load<W>(t.at.states[k] + begin);
#pragma unroll
  for (int i = 0; i < W; ++i) {
    float state[n > 0 ? n : 1];
    for (int k = 0; k < n; ++k) state[k] = states[k].at[i];
    t.step(x.at[i], gradient.at[i], state);
    for (int k = 0; k < n; ++k) states[k].at[i] = state[k];
  }
#pragma unroll
  for (int k = 0; k < n; ++k) store<W>(t.at.states[k] + begin, states[k]);
  store<W>(t.at.value + begin, x);
}
template <class Step, int W>
__global__ void step_kernel(StepTask<Step> t) {
  for_several<W>(t.count, [&](auto w, int64_t begin) { step_several<w()>(t, begin); });
}
template <int W>
__global__ void moving_average_kernel(MovingAverage t) {
  for_several<W>(t.count, [&](auto w, int64_t begin) {
    const Several<float, w()> value = load<w()>(t.value + begin);
    Several<float, w()> average = load<w()>(t.average + begin);
#pragma unroll
    for (int i = 0; i < w(); ++i) average.at[i] = t.decay * average.at[i] + (1 - t.decay) * value.at[i];
    store<w()>(t.average + begin, average);
  });
}

}  // namespace

int64_t square_parts(int64_t count) { return blocks_for(count, kEach); }
void sum_of_squares(const Squares& t, cudaStream_t stream) {
  launch(squares_kernel, square_parts(t.count), kThreads, kWarp * sizeof(double), stream, t);
  launch(add_squares_kernel, t.count > 0 ? 1 : 0, 1024, kWarp * sizeof(double), stream, t);
}
template <class Step>
void launch_step(const StepTensors& t, const Step& step, cudaStream_t stream) {
  const StepTask<Step> task{t, step.f32(), t.count};
  bool whole = whole_fours({t.value, t.gradient});
  for (const float* states : t.states) whole = whole && whole_fours({states});
  if (whole)
    launch_several<kFour>(step_kernel<Step, kFour>, task, t.count, kThreads, stream);
  else
    launch_several<1>(step_kernel<Step, 1>, task, t.count, kThreads, stream);
}
void optimizer_step(const StepTensors& t, const OptimizerStep& step, cudaStream_t stream) {
  std::visit([&](const auto& s) { launch_step(t, s, stream); }, step);
}
void moving_average(const MovingAverage& t, cudaStream_t stream) {
  if (whole_fours({t.value, t.average}))
    launch_several<kFour>(moving_average_kernel<kFour>, t, t.count, kThreads, stream);
  else
    launch_several<1>(moving_average_kernel<1>, t, t.count, kThreads, stream);
}

}  // namespace starling::STARLING_CUDA::kernels
