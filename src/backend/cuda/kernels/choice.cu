// The best tokens of rows of logits, and samples: one block per row.
#include "backend/cuda/kernels/device.cuh"
#include "backend/cuda/kernels/output.h"

namespace starling::STARLING_CUDA::kernels {
namespace {

constexpr int kMostThreads = 1024;

// Orders logits as they are chosen: larger numbers first, equal ones by smaller index. Never 0.
__device__ __forceinline__ uint64_t rank_of(float x, int64_t index) {
  const uint32_t bits = __float_as_uint(x + 0.0f), ordered = bits >> 31 ? ~bits : bits | 0x80000000u;  // -0 is 0
  return static_cast<uint64_t>(ordered) << 32 | (0xffffffffu - static_cast<uint32_t>(index));
}
__device__ __forceinline__ int64_t index_of(uint64_t rank) { return 0xffffffffu - static_cast<uint32_t>(rank); }

// The best of this thread's logits that come after `last`; 0 if there is none.
__device__ __forceinline__ uint64_t next_best(const float* z, int64_t n, uint64_t last) {
  uint64_t best = 0;
  for (int64_t c = threadIdx.x; c < n; c += blockDim.x) {
    const uint64_t rank = rank_of(z[c], c);
    if (rank < last && rank > best) best = rank;
  }
  return best;
}

// One round for each of the k: the best among the threads' best; the thread that had it looks for its next one.
__global__ void __launch_bounds__(kMostThreads) best_kernel(Best t) {
  const int64_t r = blockIdx.x;
  const float* const z = t.logits + r * t.columns;
  auto* const ranks = shared<uint64_t>();
  uint64_t mine = next_best(z, t.columns, ~uint64_t{0});
  uint64_t first = block_reduce(mine, Largest{}, ranks);
  const float top = z[index_of(first)];
  float sum = 0;
  for (int64_t c = threadIdx.x; c < t.columns; c += blockDim.x) sum += expf(z[c] - top);
  sum = block_reduce(sum, Sum{}, shared<float>());
  if (threadIdx.x == 0) {
    t.denominator[2 * r] = top;
    t.denominator[2 * r + 1] = sum;
  }
  for (int64_t i = 0; i < t.k; ++i) {
    if (i > 0) first = block_reduce(mine, Largest{}, ranks);
    const int64_t index = index_of(first);
    if (threadIdx.x == 0) {
      t.values[r * t.k + i] = z[index];
      t.indices[r * t.k + i] = static_cast<int32_t>(index);
    }
    if (mine == first) mine = next_best(z, t.columns, first);
  }
}

// Each warp adds up the probabilities of a stretch of the row; the warp in whose stretch the sum goes beyond the threshold looks for the
// place.
__global__ void __launch_bounds__(kMostThreads) sample_kernel(Sample t) {
  const int64_t r = blockIdx.x, V = t.columns;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const float* const z = t.logits + r * V;
  auto* const sums = shared<double>();
  float top = -INFINITY;
  for (int64_t c = threadIdx.x; c < V; c += blockDim.x) top = fmaxf(top, z[c]);
  top = block_reduce(top, Largest{}, shared<float>());
  const int64_t stretch = ((V + warps - 1) / warps + kWarp - 1) / kWarp * kWarp;
  const int64_t begin = warp() * stretch, end = begin + stretch < V ? begin + stretch : V;
  double sum = 0;
  for (int64_t c = begin + lane(); c < end; c += kWarp) sum += static_cast<double>(expf(z[c] - top));
  sum = warp_reduce(sum, Sum{});
  if (lane() == 0) sums[warp()] = sum;
  __syncthreads();
  double total = 0, before = 0, passed = 0;
  for (int w = 0; w < warps; ++w) total += sums[w];
  const double threshold = t.uniform[r] * total;
  int chosen = -1;
  for (int w = 0; w < warps; ++w) {  // rounding may leave all of them short of the threshold: then the last that has a token
    if (sums[w] > 0) {
      chosen = w;
      before = passed;
    }
    passed += sums[w];
    if (passed > threshold) break;
  }
  if (chosen < 0 && threadIdx.x == 0) t.tokens[r] = 0;  // not a number
  if (warp() != chosen) return;
  int64_t token = begin;
  for (int64_t c = begin; c < end; c += kWarp) {
    const double own = c + lane() < end ? static_cast<double>(expf(z[c + lane()] - top)) : 0.0;
    double upto = own;
    for (int step = 1; step < kWarp; step *= 2) {
      const double other = __shfl_up_sync(kAllLanes, upto, step);
      if (lane() >= step) upto += other;
    }
    const unsigned possible = __ballot_sync(kAllLanes, own > 0), beyond = __ballot_sync(kAllLanes, own > 0 && before + upto > threshold);
    if (possible != 0) token = c + (beyond != 0 ? __ffs(static_cast<int>(beyond)) - 1 : 31 - __clz(static_cast<int>(possible)));
    if (beyond != 0) break;
    before += __shfl_sync(kAllLanes, upto, kWarp - 1);
  }
  if (lane() == 0) t.tokens[r] = static_cast<int32_t>(token);
}

// At least eight columns for a thread.
int threads_for(int64_t columns) {
  const int64_t threads = blocks_for(columns, 8 * kWarp) * kWarp;
  return static_cast<int>(threads < kMostThreads ? threads : kMostThreads);
}

}  // namespace

void best(const Best& t, cudaStream_t stream) {
  launch(best_kernel, t.k > 0 || t.denominator ? t.rows : 0, threads_for(t.columns), kWarp * sizeof(uint64_t), stream, t);
}
void sample(const Sample& t, cudaStream_t stream) {
  launch(sample_kernel, t.rows, threads_for(t.columns), kWarp * sizeof(double), stream, t);
}

}  // namespace starling::STARLING_CUDA::kernels
