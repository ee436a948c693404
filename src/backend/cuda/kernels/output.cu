// Losses of rows of logits, one block per row. A thread has the same columns in each pass over the row, so that only sums need barriers.
#include "backend/cuda/kernels/device.cuh"
#include "backend/cuda/kernels/output.h"

namespace starling::STARLING_CUDA::kernels {
namespace {

constexpr int kMostThreads = 1024, kThreads = 256;

__device__ __forceinline__ float clamped(float x, float bound) { return x < -bound ? -bound : x > bound ? bound : x; }

struct RowSums {
  float top, total, exponentials;  // the largest logit, the sum of logits, the sum of e^(logit - top)
};
template <int W>
__device__ __forceinline__ void add_logits(RowSums& sums, const Several<float, W>& x, float bound) {
#pragma unroll
  for (int i = 0; i < W; ++i) {
    const float v = clamped(x.at[i], bound);
    sums.top = fmaxf(sums.top, v);
    sums.total += v;
  }
}
// Calls f(c, x) for W columns of z at a time, c = begin, begin + step, ... below n. Four loads are under way at once, which is what
// reaches the memory's rate with few warps.
template <int W, class F>
__device__ __forceinline__ void for_loaded(const float* z, int begin, int n, int step, F f) {
  constexpr int kAtOnce = 4;
  int c = begin;
  for (; c + (kAtOnce - 1) * step < n; c += kAtOnce * step) {
    Several<float, W> x[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) x[i] = load<W>(z + c + i * step);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) f(c + i * step, x[i]);
  }
  for (; c < n; c += step) f(c, load<W>(z + c));
}
// x = e^(x - top), with a minus sign where logits were clamped.
template <int W>
__device__ __forceinline__ void make_exponentials(RowSums& sums, Several<float, W>& x, float bound) {
#pragma unroll
  for (int i = 0; i < W; ++i) {
    const float e = expf(clamped(x.at[i], bound) - sums.top);
    sums.exponentials += e;
    x.at[i] = fabsf(x.at[i]) > bound ? -e : e;
  }
}
// row = e^(z - top), marked likewise; row may be z.
template <int W>
__device__ __forceinline__ RowSums exponentials(const float* z, float* row, int n, float bound, float* scratch) {
  const int begin = static_cast<int>(threadIdx.x) * W, step = static_cast<int>(blockDim.x) * W;
  RowSums sums{-INFINITY, 0, 0};
  for_loaded<W>(z, begin, n, step, [&](int c, Several<float, W> x) {
    add_logits(sums, x, bound);
    if (row != z) store<W>(row + c, x);
  });
  sums.top = block_reduce(sums.top, Largest{}, scratch);
  sums.total = block_reduce(sums.total, Sum{}, scratch);
  for (int c = begin; c < n; c += step) {
    Several<float, W> x = load<W>(row + c);
    make_exponentials(sums, x, bound);
    store<W>(row + c, x);
  }
  sums.exponentials = block_reduce(sums.exponentials, Sum{}, scratch);
  return sums;
}

// The gradient of row n from its marked exponentials; weight * probability = scale * e.
struct RowGradient {
  __device__ RowGradient(const Loss& t, int64_t n, float scale)
      : scale(scale),
        weight(t.weights ? t.weights[n] : 1.0f),
        uniform(weight * t.smoothing / static_cast<float>(t.vocabulary)),
        less(weight * (1 - t.smoothing)),
        own(t.targets[n] - t.first) {}
  // In the columns from c on.
  template <class T, int W>
  __device__ __forceinline__ Several<T, W> of(int c, const Several<float, W>& e) const {
    Several<float, W> out;
#pragma unroll
    for (int i = 0; i < W; ++i) {
      const bool was_clamped = e.at[i] <= 0 && __float_as_int(e.at[i]) < 0;
      const float g = e.at[i] * scale - uniform - (c + i == own ? less : 0.0f);
      out.at[i] = was_clamped ? 0.0f : g;
    }
    return narrow_all<T>(out);
  }
  const float scale, weight, uniform, less;
  const int64_t own;
};
template <class T>
__device__ __forceinline__ T* gradient_row(const Loss& t, int64_t n) {
  return static_cast<T*>(t.dlogits) + n * t.columns;
}
// Of padding rows.
template <int W, class T>
__device__ __forceinline__ void write_zeros(T* row, int64_t columns) {
  Several<T, W> zeros;
#pragma unroll
  for (int i = 0; i < W; ++i) zeros.at[i] = narrow<T>(0);
  for (int c = static_cast<int>(threadIdx.x) * W; c < columns; c += static_cast<int>(blockDim.x) * W) store<W>(row + c, zeros);
}
template <int W, class T>
__device__ __forceinline__ void write_gradient(const Loss& t, int64_t n, const float* row, float scale, bool idle) {
  T* const dz = gradient_row<T>(t, n);
  if (idle) return write_zeros<W>(dz, t.columns);
  const RowGradient gradient(t, n, scale);
  for (int c = static_cast<int>(threadIdx.x) * W; c < t.columns; c += static_cast<int>(blockDim.x) * W)
    store<W>(dz + c, gradient.of<T>(c, load<W>(row + c)));
}

__device__ __forceinline__ void write_row_loss(const Loss& t, int64_t n, float top, float exponentials, float total, float at_target) {
  const bool idle = t.targets[n] < 0;
  const float log_sum = top + logf(exponentials), nll = log_sum - at_target;
  float* const out = t.row_loss + (t.r_drop > 0 ? 4 : 3) * n;
  out[0] = idle ? 0.0f : (1 - t.smoothing) * nll + t.smoothing * (log_sum - total / static_cast<float>(t.vocabulary));
  out[1] = idle ? 0.0f : nll;
  out[2] = !idle && at_target == top ? 1.0f : 0.0f;
}

// kShared: the row is kept in shared memory.
template <class T, int W, bool kShared>
__global__ void __launch_bounds__(kMostThreads) smoothed_loss_kernel(Loss t) {
  const int64_t n = blockIdx.x;
  const int32_t target = t.targets[n];
  float *const scratch = shared<float>(), *const z = t.logits + n * t.columns, *const row = kShared ? scratch + kWarp : z;
  RowSums sums{0, 1, 0};
  if (target >= 0) {
    const float at_target = clamped(z[target], t.bound);
    sums = exponentials<W>(z, row, static_cast<int>(t.columns), t.bound, scratch);
    if (threadIdx.x == 0) write_row_loss(t, n, sums.top, sums.exponentials, sums.total, at_target);
  } else if (threadIdx.x == 0) {
    write_row_loss(t, n, 0, 1, 0, 0);
  }
  if (t.dlogits) write_gradient<W, T>(t, n, row, (t.weights ? t.weights[n] : 1.0f) / sums.exponentials, target < 0);
}

// For rows that would leave a multiprocessor room for one block, whose reading, exponentials and writing would come one after another: the
// first kHeld columns are kept in registers and the others in shared memory, so that two blocks take turns.
constexpr int kHeldThreads = 512, kHeldSteps = 6, kHeldWidth = 4, kHeld = kHeldThreads * kHeldSteps * kHeldWidth;
template <class T>
__global__ void __launch_bounds__(kHeldThreads, 2) held_loss_kernel(Loss t) {
  constexpr int W = kHeldWidth, kStep = kHeldThreads * W;
  const int64_t n = blockIdx.x;
  const int32_t target = t.targets[n];
  if (target < 0) {
    if (threadIdx.x == 0) write_row_loss(t, n, 0, 1, 0, 0);
    if (t.dlogits) write_zeros<W>(gradient_row<T>(t, n), t.columns);
    return;
  }
  float *const scratch = shared<float>(), *const rest = scratch + kWarp - kHeld;
  const float* const z = t.logits + n * t.columns;
  const int begin = static_cast<int>(threadIdx.x) * W, columns = static_cast<int>(t.columns);
  const float at_target = clamped(z[target], t.bound);
  RowSums sums{-INFINITY, 0, 0};
  for_loaded<W>(z, kHeld + begin, columns, kStep, [&](int c, Several<float, W> x) {
    add_logits(sums, x, t.bound);
    store<W>(rest + c, x);
  });
  Several<float, W> held[kHeldSteps];
#pragma unroll
  for (int i = 0; i < kHeldSteps; ++i) held[i] = load<W>(z + begin + i * kStep);
#pragma unroll
  for (int i = 0; i < kHeldSteps; ++i) add_logits(sums, held[i], t.bound);
  sums.top = block_reduce(sums.top, Largest{}, scratch);
  sums.total = block_reduce(sums.total, Sum{}, scratch);
#pragma unroll
  for (int i = 0; i < kHeldSteps; ++i) make_exponentials(sums, held[i], t.bound);
  for (int c = kHeld + begin; c < columns; c += kStep) {
    Several<float, W> x = load<W>(rest + c);
    make_exponentials(sums, x, t.bound);
    store<W>(rest + c, x);
  }
  sums.exponentials = block_reduce(sums.exponentials, Sum{}, scratch);
  if (threadIdx.x == 0) write_row_loss(t, n, sums.top, sums.exponentials, sums.total, at_target);
  if (!t.dlogits) return;
  const RowGradient gradient(t, n, (t.weights ? t.weights[n] : 1.0f) / sums.exponentials);
  T* const dz = gradient_row<T>(t, n);
#pragma unroll
  for (int i = 0; i < kHeldSteps; ++i) store<W>(dz + begin + i * kStep, gradient.of<T>(begin + i * kStep, held[i]));
  for (int c = kHeld + begin; c < columns; c += kStep) store<W>(dz + c, gradient.of<T>(c, load<W>(rest + c)));
}

// One block per pair of rows, which rarely fit into shared memory together; so exponentials are computed twice rather than kept. d = (x -
// top of x) - (y - top of y) equals log p - log q except for the difference of the logarithms of the sums of exponentials.
template <class T, int W>
__global__ void __launch_bounds__(kMostThreads) paired_loss_kernel(Loss t) {
  const int64_t n = 2 * static_cast<int64_t>(blockIdx.x), V = t.columns;
  const int begin = static_cast<int>(threadIdx.x) * W, step = static_cast<int>(blockDim.x) * W;
  const int32_t target = t.targets[n];
  const float *const zp = t.logits + n * V, *const zq = zp + V;
  T *const dp = static_cast<T*>(t.dlogits) + n * V, *const dq = dp + V;
  if (target < 0) {
    if (t.dlogits) write_zeros<W>(dp, 2 * V);
    if (threadIdx.x < 8) t.row_loss[4 * n + threadIdx.x] = 0;
    return;
  }
  float* const scratch = shared<float>();
  RowSums p{-INFINITY, 0, 0}, q{-INFINITY, 0, 0};
  for (int c = begin; c < V; c += step) {
    const Several<float, W> x = load<W>(zp + c), y = load<W>(zq + c);
#pragma unroll
    for (int i = 0; i < W; ++i) {
      const float u = clamped(x.at[i], t.bound), v = clamped(y.at[i], t.bound);
      p.top = fmaxf(p.top, u);
      p.total += u;
      q.top = fmaxf(q.top, v);
      q.total += v;
    }
  }
  p.top = block_reduce(p.top, Largest{}, scratch);
  p.total = block_reduce(p.total, Sum{}, scratch);
  q.top = block_reduce(q.top, Largest{}, scratch);
  q.total = block_reduce(q.total, Sum{}, scratch);
  float kl_p = 0, kl_q = 0;
  for (int c = begin; c < V; c += step) {
    const Several<float, W> x = load<W>(zp + c), y = load<W>(zq + c);
#pragma unroll
    for (int i = 0; i < W; ++i) {
      const float u = clamped(x.at[i], t.bound) - p.top, v = clamped(y.at[i], t.bound) - q.top, ep = expf(u), eq = expf(v);
      p.exponentials += ep;
      q.exponentials += eq;
      kl_p += ep * (u - v);
      kl_q += eq * (v - u);
    }
  }
  p.exponentials = block_reduce(p.exponentials, Sum{}, scratch);
  q.exponentials = block_reduce(q.exponentials, Sum{}, scratch);
  const float shift = logf(p.exponentials) - logf(q.exponentials);
  kl_p = block_reduce(kl_p, Sum{}, scratch) / p.exponentials - shift;
  kl_q = block_reduce(kl_q, Sum{}, scratch) / q.exponentials + shift;
  if (threadIdx.x == 0) {
    write_row_loss(t, n, p.top, p.exponentials, p.total, clamped(zp[target], t.bound));
    write_row_loss(t, n + 1, q.top, q.exponentials, q.total, clamped(zq[target], t.bound));
    t.row_loss[4 * n + 3] = t.row_loss[4 * n + 7] = (kl_p + kl_q) / 2;
  }
  if (!t.dlogits) return;
  const float weight = t.weights ? t.weights[n] : 1.0f, factor = weight * t.r_drop / 2;
  const float uniform = weight * t.smoothing / static_cast<float>(V), each_p = 1 / p.exponentials, each_q = 1 / q.exponentials;
  for (int c = begin; c < V; c += step) {
    const Several<float, W> x = load<W>(zp + c), y = load<W>(zq + c);
    Several<float, W> gp, gq;
#pragma unroll
    for (int i = 0; i < W; ++i) {
      const float u = clamped(x.at[i], t.bound) - p.top, v = clamped(y.at[i], t.bound) - q.top, d = u - v - shift;
      const float pp = expf(u) * each_p, qq = expf(v) * each_q;
      const float less = uniform + (c + i == target ? weight * (1 - t.smoothing) : 0.0f);
      gp.at[i] = fabsf(x.at[i]) > t.bound ? 0.0f : weight * pp - less + factor * (pp * (d - kl_p) + pp - qq);
      gq.at[i] = fabsf(y.at[i]) > t.bound ? 0.0f : weight * qq - less + factor * (qq * (-d - kl_q) + qq - pp);
    }
    store<W>(dp + c, narrow_all<T>(gp));
    store<W>(dq + c, narrow_all<T>(gq));
  }
}

template <int W>
__global__ void __launch_bounds__(kMostThreads) shard_exponentials_kernel(Loss t) {
  const int64_t n = blockIdx.x, own = t.targets[n] - t.first;
  float *const z = t.logits + n * t.columns, *const out = t.sums + 3 * n;
  RowSums sums{0, 0, 0};
  float at_target = 0;
  if (t.targets[n] >= 0) {
    if (own >= 0 && own < t.columns) at_target = clamped(z[own], t.bound);
    sums = exponentials<W>(z, z, static_cast<int>(t.columns), t.bound, shared<float>());
  }
  if (threadIdx.x == 0) {
    t.top[n] = sums.top;
    out[0] = sums.exponentials;
    out[1] = sums.total;
    out[2] = at_target;
  }
}

__global__ void rescale_shard_kernel(Loss t) {
  const int64_t n = global_thread();
  if (n >= t.rows) return;
  t.top[n] = expf(t.top[n] - t.group_top[n]);
  t.sums[3 * n] *= t.top[n];
}

template <class T, int W>
__global__ void __launch_bounds__(kMostThreads) shard_loss_kernel(Loss t) {
  const int64_t n = blockIdx.x;
  const float* const sums = t.sums + 3 * n;
  if (threadIdx.x == 0) write_row_loss(t, n, t.group_top[n], sums[0], sums[1], sums[2]);
  if (!t.dlogits) return;
  const float weight = t.weights ? t.weights[n] : 1.0f;
  write_gradient<W, T>(t, n, t.logits + n * t.columns, weight * t.top[n] / sums[0], t.targets[n] < 0);
}

__global__ void loss_sums_kernel(LossSums t) {
  double sums[4] = {};
  for (int64_t n = threadIdx.x; n < t.rows; n += blockDim.x) {
    if (t.targets[n] < 0) continue;
    const float* const row = t.row_loss + t.columns * n;
    const double weight = t.weights ? static_cast<double>(t.weights[n]) : 1.0;
    sums[0] += static_cast<double>(row[0]) * weight;
    sums[1] += static_cast<double>(row[1]);
    sums[2] += row[2] > 0;
    if (t.columns > 3) sums[3] += static_cast<double>(row[3]) * weight;
  }
  for (int i = 0; i < t.columns; ++i) {
    const double sum = block_reduce(sums[i], Sum{}, shared<double>());
    if (threadIdx.x == 0) t.sums[i] += sum;
  }
}

// At least eight columns for a thread.
int threads_for(int64_t columns) {
  const int64_t threads = blocks_for(columns, 8 * kWarp) * kWarp;
  return static_cast<int>(threads < kMostThreads ? threads : kMostThreads);
}
// Calls f(W) with the number of neighbouring columns that are read and written at once.
template <class F>
void by_width(const Loss& t, F f) {
  const auto all = static_cast<uintptr_t>(4 * t.columns) | reinterpret_cast<uintptr_t>(t.logits) | reinterpret_cast<uintptr_t>(t.dlogits);
  if (all % 16 == 0)
    f(std::integral_constant<int, 4>{});
  else
    f(std::integral_constant<int, 1>{});
}
constexpr int64_t kScratch = kWarp * sizeof(float), kReserved = 1 << 10;  // kReserved: what CUDA takes of a block's shared memory

}  // namespace

void smoothed_loss(Type type, const Loss& t, int64_t most_shared, cudaStream_t stream) {
  const int64_t row = t.columns * static_cast<int64_t>(sizeof(float)), rest = row - kHeld * static_cast<int64_t>(sizeof(float));
  const bool fits_twice = 2 * (kScratch + row + kReserved) <= most_shared + kReserved;
  by_type(type, [&](auto e) {
    by_width(t, [&](auto w) {
      if (w() == kHeldWidth && !fits_twice && rest >= 0 && kScratch + rest <= most_shared)
        launch(held_loss_kernel<decltype(e)>, t.rows, kHeldThreads, kScratch + rest, stream, t);
      else if (kScratch + row <= most_shared)
        launch(smoothed_loss_kernel<decltype(e), w(), true>, t.rows, threads_for(t.columns), kScratch + row, stream, t);
      else
        launch(smoothed_loss_kernel<decltype(e), w(), false>, t.rows, threads_for(t.columns), kScratch, stream, t);
    });
  });
}
void paired_loss(Type type, const Loss& t, cudaStream_t stream) {
  by_type(type, [&](auto e) {
    by_width(t, [&](auto w) { launch(paired_loss_kernel<decltype(e), w()>, t.rows / 2, threads_for(t.columns), kScratch, stream, t); });
  });
}
void shard_exponentials(const Loss& t, cudaStream_t stream) {
  by_width(t, [&](auto w) { launch(shard_exponentials_kernel<w()>, t.rows, threads_for(t.columns), kScratch, stream, t); });
}
void rescale_shard(const Loss& t, cudaStream_t stream) {
  launch(rescale_shard_kernel, blocks_for(t.rows, kThreads), kThreads, 0, stream, t);
}
void shard_loss(Type type, const Loss& t, cudaStream_t stream) {
  by_type(type, [&](auto e) {
    by_width(
        t, [&](auto w) { launch(shard_loss_kernel<decltype(e), w()>, t.rows, t.dlogits ? threads_for(t.columns) : kWarp, 0, stream, t); });
  });
}
void loss_sums(const LossSums& t, cudaStream_t stream) {
  launch(loss_sums_kernel, t.rows > 0 ? 1 : 0, kMostThreads, kWarp * sizeof(double), stream, t);
}

}  // namespace starling::STARLING_CUDA::kernels
