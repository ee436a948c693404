// Layer norm, one warp per row; and sums over columns, in two steps of fixed order.
#include <algorithm>

#include "backend/cuda/kernels/device.cuh"
#include "backend/cuda/kernels/rows.h"
#include "backend/cuda/kernels/wide.cuh"

namespace starling::STARLING_CUDA::kernels {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
constexpr int64_t kPartRows = 64;         // whose sums one block adds up
constexpr int64_t kSpan = kWarp * kWide;  // columns that a warp reads at once, where rows are whole eights
constexpr int kSpans = 4;                 // that it keeps in registers: rows of at most 1,024 columns
constexpr int64_t kPartColumns = kWarp;   // of a block that adds up parts
constexpr int kMostPartWarps = 32, kPartsAtOnce = 16;

// A row in a warp's registers: of each span, eight columns per lane; those beyond the row are zero.
struct Row {
  Eight spans[kSpans];
};
template <class F>
__device__ __forceinline__ void for_spans(int64_t columns, F f) {
#pragma unroll
  for (int s = 0; s < kSpans; ++s)
    if (const int64_t c = s * kSpan + lane() * kWide; c < columns) f(s, c);
}
template <class T>
__device__ __forceinline__ Row load_row(const T* x, int64_t columns) {
  Row row{};
  for_spans(columns, [&](int s, int64_t c) { row.spans[s] = load_eight(x + c); });
  return row;
}

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
  const float rstd = 1 / sqrtf(warp_reduce(squares, Sum{}) / static_cast<float>(t.columns) + t.epsilon);
  if (lane() == 0) {
    t.statistics[2 * n] = mean;
    t.statistics[2 * n + 1] = rstd;
  }
  for (int64_t c = lane(); c < t.columns; c += kWarp) y[c] = narrow<T>((widen(x[c]) - mean) * rstd * t.gamma[c] + t.beta[c]);
}

template <class T>
__global__ void layer_norm_eights_kernel(LayerNorm t) {
  const int64_t n = global_thread() / kWarp;
  if (n >= t.rows) return;
  const Row x = load_row(static_cast<const T*>(t.x) + n * t.columns, t.columns);
  T* const y = static_cast<T*>(t.y) + n * t.columns;
  float sum = 0, squares = 0;
  for_spans(t.columns, [&](int s, int64_t) {
#pragma unroll
    for (int i = 0; i < kWide; ++i) sum += x.spans[s].at[i];
  });
  const float mean = warp_reduce(sum, Sum{}) / static_cast<float>(t.columns);
  for_spans(t.columns, [&](int s, int64_t) {
#pragma unroll
    for (int i = 0; i < kWide; ++i) squares += (x.spans[s].at[i] - mean) * (x.spans[s].at[i] - mean);
  });
  const float rstd = 1 / sqrtf(warp_reduce(squares, Sum{}) / static_cast<float>(t.columns) + t.epsilon);
  if (lane() == 0) {
    t.statistics[2 * n] = mean;
    t.statistics[2 * n + 1] = rstd;
  }
  for_spans(t.columns, [&](int s, int64_t c) {
    const Eight gamma = load_eight(t.gamma + c), beta = load_eight(t.beta + c);
    Eight v;
#pragma unroll
    for (int i = 0; i < kWide; ++i) v.at[i] = (x.spans[s].at[i] - mean) * rstd * gamma.at[i] + beta.at[i];
    store_eight(y + c, v);
  });
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
      dgamma += g * (widen(static_cast<const T*>(t.x)[n * t.columns + c]) - t.statistics[2 * n]) * t.statistics[2 * n + 1];
      dbeta += g;
    }
    float* const part = t.parts + 2 * blockIdx.x * t.columns;
    part[c] = dgamma;
    part[t.columns + c] = dbeta;
  }
  __syncthreads();
  for (int64_t n = begin + warp(); n < end; n += kWarps) {
    const T *const x = static_cast<const T*>(t.x) + n * t.columns, *const dy = static_cast<const T*>(t.dy) + n * t.columns;
    T* const dx = static_cast<T*>(t.dx) + n * t.columns;
    const float mean = t.statistics[2 * n], rstd = t.statistics[2 * n + 1];
    float sum = 0, dot = 0;
    for (int64_t c = lane(); c < t.columns; c += kWarp) {
      const float g = widen(dy[c]) * t.gamma[c];
      sum += g;
      dot += g * (widen(x[c]) - mean) * rstd;
    }
    sum = warp_reduce(sum, Sum{}) * inverse;
    dot = warp_reduce(dot, Sum{}) * inverse;
    for (int64_t c = lane(); c < t.columns; c += kWarp) {
      const float value = rstd * (widen(dy[c]) * t.gamma[c] - sum - (widen(x[c]) - mean) * rstd * dot);
      dx[c] = narrow<T>(t.accumulate ? widen(dx[c]) + value : value);
    }
  }
}

// Each element is read once: a warp has a row in registers, and the sums over the rows that it takes; the warps' are then added in order.
template <class T>
__global__ void layer_norm_backward_eights_kernel(LayerNormBackward t) {
  const int64_t begin = blockIdx.x * kPartRows, end = begin + kPartRows < t.rows ? begin + kPartRows : t.rows;
  const float inverse = 1 / static_cast<float>(t.columns);
  Row dgamma{}, dbeta{};
  for (int64_t n = begin + warp(); n < end; n += kWarps) {
    Row x = load_row(static_cast<const T*>(t.x) + n * t.columns, t.columns),
        g = load_row(static_cast<const T*>(t.dy) + n * t.columns, t.columns);
    T* const dx = static_cast<T*>(t.dx) + n * t.columns;
    const float mean = t.statistics[2 * n], rstd = t.statistics[2 * n + 1];
    float sum = 0, dot = 0;
    for_spans(t.columns, [&](int s, int64_t c) {
      const Eight gamma = load_eight(t.gamma + c);
#pragma unroll
      for (int i = 0; i < kWide; ++i) {
        float &normed = x.spans[s].at[i], &gradient = g.spans[s].at[i];
        normed = (normed - mean) * rstd;
        dgamma.spans[s].at[i] += gradient * normed;
        dbeta.spans[s].at[i] += gradient;
        gradient *= gamma.at[i];
        sum += gradient;
        dot += gradient * normed;
      }
    });
    sum = warp_reduce(sum, Sum{}) * inverse;
    dot = warp_reduce(dot, Sum{}) * inverse;
    for_spans(t.columns, [&](int s, int64_t c) {
      Eight v{};
      if (t.accumulate) v = load_eight(dx + c);
#pragma unroll
      for (int i = 0; i < kWide; ++i) v.at[i] += rstd * (g.spans[s].at[i] - sum - x.spans[s].at[i] * dot);
      store_eight(dx + c, v);
    });
  }
  float* const sums = shared<float>();  // [kWarps, columns], of one of the two at a time
  float* const part = t.parts + 2 * blockIdx.x * t.columns;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Row& mine = half == 0 ? dgamma : dbeta;
    for_spans(t.columns, [&](int s, int64_t c) { store_eight(sums + warp() * t.columns + c, mine.spans[s]); });
    __syncthreads();
    for (int64_t c = threadIdx.x; c < t.columns; c += kThreads) {
      float sum = 0;
      for (int w = 0; w < kWarps; ++w) sum += sums[w * t.columns + c];
      part[half * t.columns + c] = sum;
    }
    __syncthreads();
  }
}

// Block (part, columns): a warp takes every eighth row of a part, a lane eight columns; the warps' sums are then added in order. kRelu: of
// gradients of relu, which are computed here and added as they are stored.
template <class T, bool kRelu>
__global__ void column_sums_kernel(ColumnSums t) {
  const int64_t across = (t.columns + kSpan - 1) / kSpan, part = blockIdx.x / across, first = blockIdx.x % across * kSpan;
  const int64_t c = first + lane() * kWide, end = (part + 1) * kPartRows < t.rows ? (part + 1) * kPartRows : t.rows;
  Eight sum{};
  for (int64_t n = part * kPartRows + warp(); n < end; n += kWarps) {
    T* const x = static_cast<T*>(t.x) + n * t.columns + c;
    const T* const h = static_cast<const T*>(t.h) + (kRelu ? n * t.columns + c : 0);
    if (t.aligned && c < t.columns) {
      Eight v = load_eight(x);
      if constexpr (kRelu) {
        const Eight active = load_eight(h);
#pragma unroll
        for (int i = 0; i < kWide; ++i) v.at[i] = active.at[i] > 0 ? t.factor * v.at[i] : 0.0f;
        v = stored_eight(x, v);
      }
#pragma unroll
      for (int i = 0; i < kWide; ++i) sum.at[i] += v.at[i];
    } else {
#pragma unroll
      for (int i = 0; i < kWide; ++i) {
        if (c + i >= t.columns) continue;
        if constexpr (kRelu) x[i] = narrow<T>(widen(h[i]) > 0 ? t.factor * widen(x[i]) : 0.0f);
        sum.at[i] += widen(x[i]);
      }
    }
  }
  float* const sums = shared<float>();  // [kWarps, kSpan]
  store_eight(sums + warp() * kSpan + lane() * kWide, sum);
  __syncthreads();
  static_assert(kThreads == kSpan);
  float all = 0;
  for (int w = 0; w < kWarps; ++w) all += sums[w * kSpan + threadIdx.x];
  if (first + threadIdx.x < t.columns) t.parts[part * t.columns + first + threadIdx.x] = all;
}

// A block has 32 columns and up to 32 warps, which take the parts in turn; their sums are then added in order. Few blocks have to wait for
// the memory, so each thread has many loads under way.
__global__ void __launch_bounds__(kMostPartWarps* kWarp) add_parts_kernel(AddParts t) {
  const int64_t c = blockIdx.x * kPartColumns + lane();
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  float* const sums = shared<float>();  // [warps, kPartColumns]
  float sum = 0;
  for (int64_t first = warp(); first < t.parts; first += kPartsAtOnce * warps) {
    float x[kPartsAtOnce];
#pragma unroll
    for (int i = 0; i < kPartsAtOnce; ++i) {
      const int64_t p = first + i * warps;
      x[i] = p < t.parts && c < t.columns ? t.x[p * t.columns + c] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kPartsAtOnce; ++i) sum += x[i];
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (warp() > 0 || c >= t.columns) return;
  for (int w = 1; w < warps; ++w) sum += sums[w * kPartColumns + lane()];
  float& y = t.half > 0 && c >= t.half ? t.second[c - t.half] : t.y[c];
  y = t.accumulate ? y + sum : sum;
}
__global__ void add_counts_kernel(AddCounts t) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < t.count; i += kThreads) sum += t.parts[i];
  sum = block_reduce(sum, Sum{}, shared<double>());
  if (threadIdx.x == 0) *t.sum += sum;
}

}  // namespace

void layer_norm(Type type, const LayerNorm& t, cudaStream_t stream) {
  const bool eights = t.columns <= kSpans * kSpan && whole_eights({t.columns}, {t.x, t.y, t.gamma, t.beta});
  by_type(type, [&](auto e) {
    using T = decltype(e);
    launch(eights ? layer_norm_eights_kernel<T> : layer_norm_kernel<T>, blocks_for(t.rows, kWarps), kThreads, 0, stream, t);
  });
}
int64_t norm_parts(int64_t rows) { return blocks_for(rows, kPartRows); }
void layer_norm_backward(Type type, const LayerNormBackward& t, cudaStream_t stream) {
  const bool eights = t.columns <= kSpans * kSpan && whole_eights({t.columns}, {t.x, t.dy, t.dx, t.gamma});
  by_type(type, [&](auto e) {
    using T = decltype(e);
    if (eights)
      launch(layer_norm_backward_eights_kernel<T>, norm_parts(t.rows), kThreads, kWarps * t.columns * int64_t{sizeof(float)}, stream, t);
    else
      launch(layer_norm_backward_kernel<T>, norm_parts(t.rows), kThreads, 0, stream, t);
  });
}
int64_t sum_parts(int64_t rows) { return blocks_for(rows, kPartRows); }
void column_sums(Type type, const ColumnSums& task, cudaStream_t stream) {
  ColumnSums t = task;
  t.aligned = whole_eights({t.columns}, {t.x, t.h});
  by_type(type, [&](auto e) {
    using T = decltype(e);
    launch(t.h ? column_sums_kernel<T, true> : column_sums_kernel<T, false>, sum_parts(t.rows) * blocks_for(t.columns, kSpan), kThreads,
           kWarps * kSpan * sizeof(float), stream, t);
  });
}
void add_parts(const AddParts& t, cudaStream_t stream) {
  const auto threads = static_cast<int>(std::clamp<int64_t>(t.parts, 1, kMostPartWarps)) * kWarp;
  launch(add_parts_kernel, blocks_for(t.columns, kPartColumns), threads, threads * int64_t{sizeof(float)}, stream, t);
}
void add_counts(const AddCounts& t, cudaStream_t stream) { launch(add_counts_kernel, 1, kThreads, kWarps * sizeof(double), stream, t); }

}  // namespace starling::STARLING_CUDA::kernels
