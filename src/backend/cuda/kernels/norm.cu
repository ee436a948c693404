// Layer norm, a warp a row; and sums over columns, in two steps of fixed order.
#include "backend/cuda/kernels/device.cuh"
#include "backend/cuda/kernels/rows.h"

namespace starling::STARLING_CUDA::kernels {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
constexpr int64_t kPartRows = 64;     // whose gradients one block adds up
constexpr int64_t kPartColumns = 64;  // of a block that adds up rows: four threads a column
constexpr float kEpsilon = 1e-5f;

template <class T>
__global__ void layer_norm_kernel(LayerNorm t) {
  const int64_t n = global_thread() / kWarp;
  if (n >= t.rows) return;
  const T* const x = static_cast<const T*>(t.x) + n * t.columns;
  T* const y = static_cast<T*>(t.y) + n * t.columns;
  float sum = 0, squares = 0;
  for (int64_t c = lane(); c < t.columns; c += kWarp) sum += widen(x[c]);
  const float mean = warp_reduce(sum, Sum{}) / static_cast<float>(t.columns);
  for (int64_t c = lane(); c < t.columns; c += kWarp) squares += (widen(x[c]) - mean) * (widen(x[c]) - mean);
  const float rstd = 1 / sqrtf(warp_reduce(squares, Sum{}) / static_cast<float>(t.columns) + kEpsilon);
  if (lane() == 0) t.statistics[2 * n] = mean, t.statistics[2 * n + 1] = rstd;
  for (int64_t c = lane(); c < t.columns; c += kWarp) y[c] = narrow<T>((widen(x[c]) - mean) * rstd * t.gamma[c] + t.beta[c]);
}

template <class T>
__global__ void layer_norm_backward_kernel(LayerNormBackward t) {
  const int64_t begin = blockIdx.x * kPartRows, end = begin + kPartRows < t.rows ? begin + kPartRows : t.rows;
  const float inverse = 1 / static_cast<float>(t.columns);
  // The parts first: dx may be dy.
  for (int64_t c = threadIdx.x; c < t.columns; c += kThreads) {
    float dgamma = 0, dbeta = 0;
    for (int64_t n = begin; n < end; ++n) {
      const float g = widen(static_cast<const T*>(t.dy)[n * t.columns + c]);
      dgamma += g * (widen(static_cast<const T*>(t.x)[n * t.columns + c]) - t.statistics[2 * n]) * t.statistics[2 * n + 1], dbeta += g;
    }
    float* const part = t.parts + 2 * blockIdx.x * t.columns;
    part[c] = dgamma, part[t.columns + c] = dbeta;
  }
  __syncthreads();
  for (int64_t n = begin + warp(); n < end; n += kWarps) {
    const T *const x = static_cast<const T*>(t.x) + n * t.columns, *const dy = static_cast<const T*>(t.dy) + n * t.columns;
    T* const dx = static_cast<T*>(t.dx) + n * t.columns;
    const float mean = t.statistics[2 * n], rstd = t.statistics[2 * n + 1];
    float sum = 0, dot = 0;
    for (int64_t c = lane(); c < t.columns; c += kWarp) {
      const float g = widen(dy[c]) * t.gamma[c];
      sum += g, dot += g * (widen(x[c]) - mean) * rstd;
    }
    sum = warp_reduce(sum, Sum{}) * inverse, dot = warp_reduce(dot, Sum{}) * inverse;
    for (int64_t c = lane(); c < t.columns; c += kWarp) {
      const float value = rstd * (widen(dy[c]) * t.gamma[c] - sum - (widen(x[c]) - mean) * rstd * dot);
      dx[c] = narrow<T>(t.accumulate ? widen(dx[c]) + value : value);
    }
  }
}

// Block (part, columns): four groups of threads take every fourth row, neighbours in a group neighbouring columns.
template <class T>
__global__ void column_sums_kernel(ColumnSums t) {
  const int64_t across = (t.columns + kPartColumns - 1) / kPartColumns, part = blockIdx.x / across;
  const int64_t c = blockIdx.x % across * kPartColumns + threadIdx.x % kPartColumns, group = threadIdx.x / kPartColumns;
  float* const sums = shared<float>();
  float sum = 0;
  for (int64_t n = part * kPartRows + group; n < (part + 1) * kPartRows && n < t.rows && c < t.columns; n += kThreads / kPartColumns)
    sum += widen(static_cast<const T*>(t.x)[n * t.columns + c]);
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (group > 0 || c >= t.columns) return;
  for (int64_t i = threadIdx.x + kPartColumns; i < kThreads; i += kPartColumns) sum += sums[i];
  t.parts[part * t.columns + c] = sum;
}

__global__ void add_parts_kernel(AddParts t) {
  const int64_t c = global_thread();
  if (c >= t.columns) return;
  float sum = 0;
  for (int64_t p = 0; p < t.parts; ++p) sum += t.x[p * t.stride + c];
  t.y[c] = t.accumulate ? t.y[c] + sum : sum;
}
__global__ void add_counts_kernel(AddCounts t) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < t.count; i += kThreads) sum += t.parts[i];
  sum = block_reduce(sum, Sum{}, shared<double>());
  if (threadIdx.x == 0) *t.sum += sum;
}

}  // namespace

void layer_norm(Type type, const LayerNorm& t, cudaStream_t stream) {
  by_type(type, [&](auto e) { launch(layer_norm_kernel<decltype(e)>, blocks_for(t.rows, kWarps), kThreads, 0, stream, t); });
}
int64_t norm_parts(int64_t rows) { return blocks_for(rows, kPartRows); }
void layer_norm_backward(Type type, const LayerNormBackward& t, cudaStream_t stream) {
  by_type(type, [&](auto e) { launch(layer_norm_backward_kernel<decltype(e)>, norm_parts(t.rows), kThreads, 0, stream, t); });
}
int64_t sum_parts(int64_t rows) { return blocks_for(rows, kPartRows); }
void column_sums(Type type, const ColumnSums& t, cudaStream_t stream) {
  by_type(type, [&](auto e) {
    launch(column_sums_kernel<decltype(e)>, sum_parts(t.rows) * blocks_for(t.columns, kPartColumns), kThreads, kThreads * sizeof(float),
           stream, t);
  });
}
void add_parts(const AddParts& t, cudaStream_t stream) {
  launch(add_parts_kernel, blocks_for(t.columns, kThreads), kThreads, 0, stream, t);
}
void add_counts(const AddCounts& t, cudaStream_t stream) { launch(add_counts_kernel, 1, kThreads, kWarps * sizeof(double), stream, t); }

}  // namespace starling::STARLING_CUDA::kernels
