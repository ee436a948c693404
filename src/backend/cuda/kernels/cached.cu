// Attention of one query per row over a list of rows, for decoding. A block has a row, and a warp one head at a time. The eight lanes of a
// group have the columns 4 near + 32 m of a key, and the four groups of the warp neighbouring keys; each group goes through its keys, eight
// at a time (online softmax), so that a list may have any length. For heads wider than W, a block has one piece of the result.
#include <algorithm>

#include "backend/cuda/kernels/attention.cuh"

namespace starling::STARLING_CUDA::kernels {
namespace {

constexpr int kMostWarps = 16, kGroups = kWarp / kLanes, kEach = 8;  // kEach: keys of a group at a time

struct Cached {
  AttendCached task;
  int64_t pieces;
  float scale;
  bool whole;
};

// The first W columns of a query in this lane's part, scaled.
template <class T, int W>
struct Query {
  __device__ Query(const Cached& all, int64_t row, int64_t head, int near)
      : at(static_cast<const T*>(all.task.q) + row * all.task.q_stride + head * all.task.width), near(near) {
#pragma unroll
    for (int m = 0; m < W / kWarp; ++m) {
      const int64_t c = m * kWarp + kQuad * near;
      columns[m] = load_quad(at + c, all.task.width - c, all.whole);
    }
  }
  // This lane's part of the product with a key.
  __device__ float times(const T* key, const Cached& all) const {
    float sum = 0;
#pragma unroll
    for (int m = 0; m < W / kWarp; ++m) {
      const int64_t c = m * kWarp + kQuad * near;
      sum = dot(columns[m], load_quad(key + c, all.task.width - c, all.whole), sum);
    }
    for (int64_t c = W + kQuad * near; c < all.task.width; c += kWarp)
      sum = dot(load_quad(at + c, all.task.width - c, all.whole), load_quad(key + c, all.task.width - c, all.whole), sum);
    return sum;
  }
  const T* at;
  int near;
  float4 columns[W / kWarp];
};

// The state of a group of lanes after the keys that it has seen.
template <int W>
struct Seen {
  float top = -INFINITY, sum = 0;
  float4 out[W / kWarp] = {};
  // Rescales the state to a larger score.
  __device__ void raise(float to) {
    const float correction = top == to ? 1 : expf(top - to);
    top = to;
    sum *= correction;
#pragma unroll
    for (int m = 0; m < W / kWarp; ++m) out[m] = scaled(out[m], correction);
  }
};

// What the relative position of key j adds to a product with the query, which stands at the last of `length` keys.
__device__ __forceinline__ float relative_score(const AttendCached& t, int64_t row, int64_t head, int j, int length) {
  if (t.relative.reach == 0 || j >= length) return 0;
  return t.relative.scores[row * t.relative.stride + bin_at(t.relative, static_cast<int>(head), j + 1 - length)];
}

// The probabilities of each head by bin; scores are computed again. tops and sums: of this warp's heads.
template <class T, int W>
__device__ void sum_by_bin(const Cached& all, int64_t row, const int32_t* index, int length, const float* tops, const float* sums) {
  const AttendCached& t = all.task;
  const int near = lane() % kLanes, group = lane() / kLanes, warps = static_cast<int>(blockDim.x) / kWarp;
  const int64_t bins = 2 * t.relative.reach + 1;
  for (int64_t h = warp(); h < t.heads; h += warps) {
    T* const own = static_cast<T*>(t.relative.mass) + row * t.relative.stride + h * bins;
    for (int64_t b = lane(); b < bins; b += kWarp) own[b] = narrow<T>(0);
    __syncwarp();
    const Query<T, W> query(all, row, h, near);
    float far = 0;  // of the first bin; the others have one key at most
    for (int j0 = 0; j0 < length; j0 += kGroups) {
      const int j = j0 + group < length ? j0 + group : length - 1;
      const T* const k = static_cast<const T*>(t.k) + index[j] * t.kv_stride + h * t.width;
      const float s = (reduce_neighbours(query.times(k, all), Sum{}) + relative_score(t, row, h, j, length)) * all.scale;
      const float p = j0 + group < length ? expf(s - tops[h]) / sums[h] : 0;
      if (j + 1 - length <= -t.relative.reach)
        far += p;
      else if (near == 0 && j0 + group < length)
        own[j + 1 - length + t.relative.reach] = narrow<T>(p);
    }
    far = reduce_groups(far, Sum{});
    if (lane() == 0) own[0] = narrow<T>(far);
  }
}

template <class T, int W>
__global__ void __launch_bounds__(kMostWarps* kWarp, 1) attend_cached_kernel(Cached all) {
  const AttendCached& t = all.task;
  const int64_t row = blockIdx.x / all.pieces, piece = blockIdx.x % all.pieces * W;
  const int near = lane() % kLanes, group = lane() / kLanes, warps = static_cast<int>(blockDim.x) / kWarp;
  const int32_t* const index = t.index + t.offsets[row];
  const int length = t.offsets[row + 1] - t.offsets[row];
  float *const tops = shared<float>(), *const sums = tops + t.heads;
  for (int64_t h = warp(); h < t.heads; h += warps) {
    const Query<T, W> query(all, row, h, near);
    const T *const k = static_cast<const T*>(t.k) + h * t.width, *const v = static_cast<const T*>(t.v) + h * t.width;
    Seen<W> seen;
    for (int j0 = 0; j0 < length; j0 += kGroups * kEach) {
      const int32_t mine = j0 + lane() < length ? index[j0 + lane()] : 0;
      int64_t rows[kEach];
      float s[kEach], largest = seen.top;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        rows[i] = __shfl_sync(kAllLanes, mine, kGroups * i + group) * t.kv_stride;
        s[i] = j0 + kGroups * i < length ? query.times(k + rows[i], all) : 0;
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        s[i] = (reduce_neighbours(s[i], Sum{}) + relative_score(t, row, h, j0 + kGroups * i + group, length)) * all.scale;
        if (j0 + kGroups * i + group >= length) s[i] = -INFINITY;
        largest = fmaxf(largest, s[i]);
      }
      seen.raise(largest);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (j0 + kGroups * i + group >= length) break;
        const float e = expf(s[i] - seen.top);
        seen.sum += e;
#pragma unroll
        for (int m = 0; m < W / kWarp; ++m) {
          const int64_t c = piece + m * kWarp + kQuad * near;
          add_scaled(seen.out[m], e, load_quad(v + rows[i] + c, t.width - c, all.whole));
        }
      }
    }
    seen.raise(reduce_groups(seen.top, Largest{}));
    const float total = reduce_groups(seen.sum, Sum{}), share = length == 0 ? 0 : 1 / total;
    if (lane() == 0) {
      tops[h] = seen.top;
      sums[h] = total;
    }
#pragma unroll
    for (int m = 0; m < W / kWarp; ++m) {
      float4& x = seen.out[m];
      x = {reduce_groups(x.x, Sum{}), reduce_groups(x.y, Sum{}), reduce_groups(x.z, Sum{}), reduce_groups(x.w, Sum{})};
      const int64_t c = piece + m * kWarp + kQuad * near;
      if (group == 0) store_quad(static_cast<T*>(t.y) + (row * t.heads + h) * t.width + c, scaled(x, share), t.width - c, all.whole);
    }
  }
  if (piece > 0) return;
  if (t.relative.reach > 0) sum_by_bin<T, W>(all, row, index, length, tops, sums);
  if (t.weights == nullptr) return;
  // The mean over heads, each key's in the order of heads: scores are computed again.
  __syncthreads();
  for (int j0 = kGroups * warp(); j0 < length; j0 += kGroups * warps) {
    const int j = j0 + group < length ? j0 + group : length - 1;
    const T* const k = static_cast<const T*>(t.k) + index[j] * t.kv_stride;
    float total = 0;
    for (int64_t h = 0; h < t.heads; ++h) {
      const float s =
          (reduce_neighbours(Query<T, W>(all, row, h, near).times(k + h * t.width, all), Sum{}) + relative_score(t, row, h, j, length)) *
          all.scale;
      total += expf(s - tops[h]) / sums[h];
    }
    if (near == 0 && j0 + group < length) t.weights[t.offsets[row] + j] = total / static_cast<float>(t.heads);
  }
}

}  // namespace

void attend_cached(Type type, const AttendCached& t, cudaStream_t stream) {
  by_type(type, [&](auto e) {
    using T = decltype(e);
    const bool whole = whole_quads<T>({t.width, t.q_stride, t.kv_stride}, {t.q, t.k, t.v, t.y});
    const int threads = static_cast<int>(std::min<int64_t>(t.heads, kMostWarps)) * kWarp;
    const auto go = [&](auto w) {
      constexpr int W = decltype(w)::value;
      const int64_t pieces = blocks_for(t.width, W);
      launch(attend_cached_kernel<T, W>, t.rows * pieces, threads, 2 * t.heads * static_cast<int64_t>(sizeof(float)), stream,
             Cached{t, pieces, 1 / std::sqrt(static_cast<float>(t.width)), whole});
    };
    if (t.width <= 32)
      go(std::integral_constant<int, 32>{});
    else if (t.width <= 64)
      go(std::integral_constant<int, 64>{});
    else
      go(std::integral_constant<int, 128>{});
  });
}

}  // namespace starling::STARLING_CUDA::kernels
