// One thread per element: these kernels wait for memory.
#include "backend/cuda/kernels/device.cuh"
#include "backend/cuda/kernels/optimizer_steps.h"

namespace starling::STARLING_CUDA::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kEach = 8192;  // elements whose squares one block adds up

__global__ void squares_kernel(Squares t) {
  double sum = 0;
  const int64_t begin = blockIdx.x * kEach, end = begin + kEach < t.count ? begin + kEach : t.count;
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
template <class Step>
__global__ void step_kernel(StepTask<Step> t) {
  constexpr int n = Step::kStates;
  const int64_t i = global_thread();
  if (i >= t.count) return;
  float x = t.at.value[i], state[n > 0 ? n : 1];
  for (int k = 0; k < n; ++k) state[k] = t.at.states[k][i];
  t.step(x, t.at.gradient[i], state);
  for (int k = 0; k < n; ++k) t.at.states[k][i] = state[k];
  t.at.value[i] = x;
}
__global__ void moving_average_kernel(MovingAverage t) {
  const int64_t i = global_thread();
  if (i < t.count) t.average[i] = t.decay * t.average[i] + (1 - t.decay) * t.value[i];
}

template <class Task>
void launch_elements(void (*kernel)(Task), const Task& t, cudaStream_t stream) {
  launch(kernel, blocks_for(t.count, kThreads), kThreads, 0, stream, t);
}

}  // namespace

int64_t square_parts(int64_t count) { return blocks_for(count, kEach); }
void sum_of_squares(const Squares& t, cudaStream_t stream) {
  launch(squares_kernel, square_parts(t.count), kThreads, kWarp * sizeof(double), stream, t);
  launch(add_squares_kernel, t.count > 0 ? 1 : 0, 1024, kWarp * sizeof(double), stream, t);
}
template <class Step>
void launch_step(const StepTensors& t, const Step& step, cudaStream_t stream) {
  launch_elements(step_kernel<Step>, StepTask<Step>{t, step.f32(), t.count}, stream);
}
void optimizer_step(const StepTensors& t, const OptimizerStep& step, cudaStream_t stream) {
  std::visit([&](const auto& s) { launch_step(t, s, stream); }, step);
}
void moving_average(const MovingAverage& t, cudaStream_t stream) { launch_elements(moving_average_kernel, t, stream); }

}  // namespace starling::STARLING_CUDA::kernels
