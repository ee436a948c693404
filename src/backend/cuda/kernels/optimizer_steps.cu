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

__global__ void adam_kernel(Adam t) {
  const int64_t i = global_thread();
  if (i >= t.count) return;
  const float x = t.value[i], g = t.gradient[i] * t.scale + t.coupled_decay * x;
  const float first = t.beta1 * t.m[i] + (1 - t.beta1) * g, second = t.beta2 * t.v[i] + (1 - t.beta2) * g * g;
  t.m[i] = first;
  t.v[i] = second;
  t.value[i] = x - t.step * first / (sqrtf(second) * t.root + t.epsilon) - t.rate * t.decoupled_decay * x;
}
__global__ void adagrad_kernel(Adagrad t) {
  const int64_t i = global_thread();
  if (i >= t.count) return;
  const float x = t.value[i], g = t.gradient[i] * t.scale + t.weight_decay * x, squares = t.v[i] + g * g;
  t.v[i] = squares;
  t.value[i] = x - t.rate * g / (sqrtf(squares) + t.epsilon);
}
__global__ void sgd_kernel(Sgd t) {
  const int64_t i = global_thread();
  if (i < t.count) t.value[i] -= t.rate * (t.scale * t.gradient[i] + t.weight_decay * t.value[i]);
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
void adam(const Adam& t, cudaStream_t stream) { launch_elements(adam_kernel, t, stream); }
void adagrad(const Adagrad& t, cudaStream_t stream) { launch_elements(adagrad_kernel, t, stream); }
void sgd(const Sgd& t, cudaStream_t stream) { launch_elements(sgd_kernel, t, stream); }
void moving_average(const MovingAverage& t, cudaStream_t stream) { launch_elements(moving_average_kernel, t, stream); }

}  // namespace starling::STARLING_CUDA::kernels
