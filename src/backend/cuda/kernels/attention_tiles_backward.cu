// The gradient of attention on tensor cores: a block has a sentence and head and goes through the pairs of tiles in a fixed order, as in
// attention_backward.cu, which says more about sentences of many tiles. Batches of sentences of one tile have a kernel of their own, in
// which nothing lives through a loop: half the registers, so twice the warps on a multiprocessor, which is what hides its latencies.
#include "backend/cuda/kernels/attention_tiles.cuh"

namespace starling::STARLING_CUDA::kernels {
namespace {

// out [16, W] += the transpose of weights [rows, 16] at `weights`, whose rows are `stride` elements apart, times x [rows, W].
template <int W>
__device__ __forceinline__ void add_turned(const uint16_t* weights, int stride, const uint16_t* x, int rows, float (&out)[W / 8][4]) {
  for (int row = 0; row < rows; row += 16) {
    uint32_t left[4];
    load_left_turned(left, weights + row * stride, stride);
#pragma unroll
    for (int c = 0; c < W / 16; ++c) {
      uint32_t right[4];
      load_right(right, x + row * kTileStride<W> + 16 * c, kTileStride<W>);
      multiply_tiles(out[2 * c], left, right[0], right[1]);
      multiply_tiles(out[2 * c + 1], left, right[2], right[3]);
    }
  }
}

// The same stride for weights of 8 N keys.
template <int N>
constexpr int kWeightStride = kTileStride<8 * N>;

// What a block works on, and where it lies in shared memory. A weight's row is `stride` elements.
template <int W>
struct Tiles {
  __device__ Tiles(const AttentionBackward& all, const Plan& plan, int row_stride)
      : b(all),
        t(all.of),
        p(part_of(t, 1, 1, 0x7fffffff)),
        scale(plan.scale),
        mask_key(dropout_head_key(t.mask.key, t.first_head + p.head)),
        stride(row_stride),
        q(shared<uint16_t>()),
        dy(q + plan.query_tile * kTileStride<W>),
        k(dy + plan.query_tile * kTileStride<W>),
        v(k + plan.key_tile * kTileStride<W>),
        dropped(v + plan.key_tile * kTileStride<W>),
        dscores(dropped + plan.query_tile * row_stride) {}

  __device__ __forceinline__ void load(const void* x, int64_t x_stride, int row, int rows, uint16_t* tile) const {
    load_bf16_tile<W>(static_cast<const Bf16*>(x) + row * x_stride + p.head * t.width, x_stride, rows, t.width, tile);
  }
  __device__ __forceinline__ void load_queries(int q0, int queries) const {
    load(t.q, t.q_stride, p.first_row + q0, queries, q);
    load(b.dy, t.heads * t.width, p.first_row + q0, queries, dy);
  }
  __device__ __forceinline__ void load_keys(int k0, int keys) const {
    load(t.k, t.kv_stride, p.first_key + k0, keys, k);
    load(t.v, t.kv_stride, p.first_key + k0, keys, v);
  }

  // Probabilities s, and gradients g of them, of this thread's queries from q0 on and keys from k0 on; kept: see kept_pairs.
  template <int N>
  __device__ __forceinline__ void probabilities(int q0, int queries, int k0, int keys, float (&s)[N][4], float (&g)[N][4],
                                                uint32_t (&kept)[2]) const {
    products_of_rows<W>(q + own.first * kTileStride<W>, k, keys, s);
    products_of_rows<W>(dy + own.first * kTileStride<W>, v, keys, g);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int i = own.row(r), row = p.first_row + q0 + i, limit = i < queries ? visible(t, p.keys, q0 + i) - k0 : 0;
      const float lse = i < queries ? t.lse[int64_t{row} * t.heads + p.head] : 0;
      kept[r] = i < queries ? kept_pairs(t.mask, mask_key, row, k0, own.near) : 0;
#pragma unroll
      for (int n = 0; n < N; ++n) {
        if (8 * n >= keys) break;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float &x = s[n][2 * r + e], &gradient = g[n][2 * r + e];
          x = 8 * n + 2 * own.near + e < limit ? expf(x * scale - lse) : 0;
          gradient = kept[r] >> (2 * n + e) & 1 ? gradient * t.mask.scale : 0;
        }
      }
    }
  }
  template <int N>
  __device__ __forceinline__ float dot_of(const float (&s)[N][4], const float (&g)[N][4], int r) const {
    float sum = 0;
#pragma unroll
    for (int n = 0; n < N; ++n) sum = fmaf(s[n][2 * r], g[n][2 * r], fmaf(s[n][2 * r + 1], g[n][2 * r + 1], sum));
    return sum;
  }
  // Makes gradients of the scores of g in row r, given the sum of its probabilities times their gradients, and writes them and the
  // probabilities after dropout, for a tile of key_tile keys.
  template <int N>
  __device__ __forceinline__ void write_weights(float (&s)[N][4], float (&g)[N][4], uint32_t kept, int r, float product,
                                                int key_tile) const {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (8 * n >= key_tile) break;
      float drop[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float &x = s[n][2 * r + e], &gradient = g[n][2 * r + e];
        drop[e] = kept >> (2 * n + e) & 1 ? x * t.mask.scale : 0;
        gradient = x * (gradient - product);
      }
      const int at = own.row(r) * stride + 8 * n + 2 * own.near;
      *reinterpret_cast<uint32_t*>(dropped + at) = pair_of(drop[0], drop[1]);
      *reinterpret_cast<uint32_t*>(dscores + at) = pair_of(g[n][2 * r], g[n][2 * r + 1]);
    }
  }
  // x = factor * the warp's 16 rows of sums, of which `rows` of the tile's exist; the tile begins in row `first` of x.
  __device__ __forceinline__ void write_rows(const float (&sums)[W / 8][4], float factor, int rows, int64_t first, void* x,
                                             int64_t x_stride) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (own.row(r) >= rows) continue;
      auto* const to = static_cast<Bf16*>(x) + (first + own.row(r)) * x_stride + p.head * t.width + 2 * own.near;
#pragma unroll
      for (int c = 0; c < W / 8; ++c)
        if (8 * c < t.width) *reinterpret_cast<uint32_t*>(to + 8 * c) = pair_of(factor * sums[c][2 * r], factor * sums[c][2 * r + 1]);
    }
  }
  // For a sentence without keys.
  __device__ __forceinline__ void clear_queries() const {
    for (int64_t i = threadIdx.x; i < p.queries * t.width; i += blockDim.x)
      static_cast<Bf16*>(b.dq)[(p.first_row + i / t.width) * b.dq_stride + p.head * t.width + i % t.width] = narrow<Bf16>(0);
  }

  const AttentionBackward& b;
  const Attention& t;
  const Part p;
  const OwnRows own;
  const float scale;
  const uint64_t mask_key;
  const int stride;
  uint16_t *const q, *const dy, *const k, *const v;
  uint16_t *const dropped, *const dscores;  // [query_tile, stride], as is
};

// Whether this block has rows of no sentence, which it clears.
__device__ __forceinline__ bool clears_idle(const AttentionBackward& b) {
  const Attention& t = b.of;
  const int64_t D = t.heads * t.width, work = t.sentences * t.heads, idle = blockIdx.x - work;
  if (idle < 0) return false;
  if (idle < t.idle) {
    clear_idle<Bf16>(t.query, t.sentences, idle, b.dq, b.dq_stride, D);
  } else {
    clear_idle<Bf16>(t.key, t.sentences, idle - t.idle, b.dk, b.dkv_stride, D);
    clear_idle<Bf16>(t.key, t.sentences, idle - t.idle, b.dv, b.dkv_stride, D);
  }
  return true;
}

// For sentences of at most 64 queries and 8 N keys.
template <int W, int N>
__global__ void __launch_bounds__(kMostThreads, 4) attention_tile_backward_kernel(Planned<AttentionBackward> all) {
  const AttentionBackward& b = all.task;
  if (clears_idle(b)) return;
  const Tiles<W> tiles(b, all.plan, kWeightStride<N>);
  const Part& p = tiles.p;
  const OwnRows& own = tiles.own;
  if (p.keys == 0) return tiles.clear_queries();
  tiles.load_queries(0, p.queries);
  tiles.load_keys(0, p.keys);
  __syncthreads();
  if (own.first < p.queries) {
    float s[N][4] = {}, g[N][4] = {}, dq[W / 8][4] = {};
    uint32_t kept[2];
    tiles.probabilities(0, p.queries, 0, p.keys, s, g, kept);
#pragma unroll
    for (int r = 0; r < 2; ++r) tiles.write_weights(s, g, kept[r], r, reduce_row(tiles.dot_of(s, g, r), Sum{}), all.plan.key_tile);
    add_weighted_rows<W>(g, tiles.k, p.keys, dq);
    tiles.write_rows(dq, tiles.scale, p.queries, p.first_row, b.dq, b.dq_stride);
  }
  __syncthreads();
  if (own.first >= p.keys) return;
  {
    float dv[W / 8][4] = {};
    add_turned<W>(tiles.dropped + own.first, tiles.stride, tiles.dy, p.queries, dv);
    tiles.write_rows(dv, 1, p.keys, p.first_key, b.dv, b.dkv_stride);
  }
  float dk[W / 8][4] = {};
  add_turned<W>(tiles.dscores + own.first, tiles.stride, tiles.q, p.queries, dk);
  tiles.write_rows(dk, tiles.scale, p.keys, p.first_key, b.dk, b.dkv_stride);
}

template <int W>
__global__ void __launch_bounds__(kMostThreads, 2) attention_tiles_backward_kernel(Planned<AttentionBackward> all) {
  const AttentionBackward& b = all.task;
  if (clears_idle(b)) return;
  const Attention& t = b.of;
  const Plan& plan = all.plan;
  const int64_t D = t.heads * t.width;
  const Tiles<W> tiles(b, plan, kWeightStride<kEights>);
  const Part& p = tiles.p;
  const OwnRows& own = tiles.own;
  const auto tile_queries = [&](int q0) { return p.queries - q0 < plan.query_tile ? p.queries - q0 : plan.query_tile; };
  const auto tile_keys = [&](int k0) { return p.keys - k0 < plan.key_tile ? p.keys - k0 : plan.key_tile; };
  const auto see = [&](int q0, int queries, int k0) { return k0 < visible(t, p.keys, q0 + queries - 1); };
  const auto load = [&](int q0, int k0) {
    __syncthreads();
    tiles.load_queries(q0, tile_queries(q0));
    tiles.load_keys(k0, tile_keys(k0));
    __syncthreads();
  };

  // The sum of each query's probabilities times their gradients; with several tiles of keys it is computed before everything else.
  const bool several = p.keys > plan.key_tile;
  if (several)
    for (int q0 = 0; q0 < p.queries; q0 += plan.query_tile) {
      const int queries = tile_queries(q0);
      float sums[2] = {};
      for (int k0 = 0; k0 < p.keys && see(q0, queries, k0); k0 += plan.key_tile) {
        load(q0, k0);
        if (own.first >= queries) continue;
        float s[kEights][4] = {}, g[kEights][4] = {};
        uint32_t kept[2];
        tiles.probabilities(q0, queries, k0, tile_keys(k0), s, g, kept);
        for (int r = 0; r < 2; ++r) sums[r] += tiles.dot_of(s, g, r);
      }
      for (int r = 0; r < 2; ++r) {
        const float sum = reduce_row(sums[r], Sum{});
        if (own.near == 0 && own.row(r) < queries) b.dots[int64_t{p.first_row + q0 + own.row(r)} * t.heads + p.head] = sum;
      }
    }

  for (int k0 = 0; k0 < p.keys; k0 += plan.key_tile) {
    const int keys = tile_keys(k0);
    float dk[W / 8][4] = {}, dv[W / 8][4] = {};  // of the warp's 16 keys, as it has queries
    for (int q0 = 0; q0 < p.queries; q0 += plan.query_tile) {
      const int queries = tile_queries(q0);
      if (!see(q0, queries, k0)) continue;
      load(q0, k0);
      float dq[W / 8][4] = {};
      if (own.first < queries) {
        float s[kEights][4] = {}, g[kEights][4] = {};
        uint32_t kept[2];
        tiles.probabilities(q0, queries, k0, keys, s, g, kept);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          float product = reduce_row(tiles.dot_of(s, g, r), Sum{});
          if (several && own.row(r) < queries) product = b.dots[int64_t{p.first_row + q0 + own.row(r)} * t.heads + p.head];
          tiles.write_weights(s, g, kept[r], r, product, plan.key_tile);
        }
        add_weighted_rows<W>(g, tiles.k, keys, dq);
      }
      __syncthreads();
      if (own.first < keys) {
        add_turned<W>(tiles.dropped + own.first, tiles.stride, tiles.dy, queries, dv);
        add_turned<W>(tiles.dscores + own.first, tiles.stride, tiles.q, queries, dk);
      }
      if (own.first >= queries) continue;
      const bool last = !see(q0, queries, k0 + plan.key_tile);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if (own.row(r) >= queries) continue;
        const int64_t row = p.first_row + q0 + own.row(r);
        float* const sums = b.sums + row * D + p.head * t.width;
        auto* const to = static_cast<Bf16*>(b.dq) + row * b.dq_stride + p.head * t.width;
#pragma unroll
        for (int c = 0; c < W / 8; ++c) {
          const int at = 8 * c + 2 * own.near;
          if (8 * c >= t.width) break;
          float2 sum{dq[c][2 * r], dq[c][2 * r + 1]};
          if (k0 > 0) {
            sum.x += sums[at];
            sum.y += sums[at + 1];
          }
          if (last)
            *reinterpret_cast<uint32_t*>(to + at) = pair_of(plan.scale * sum.x, plan.scale * sum.y);
          else
            sums[at] = sum.x, sums[at + 1] = sum.y;
        }
      }
    }
    tiles.write_rows(dk, plan.scale, keys, p.first_key + k0, b.dk, b.dkv_stride);
    tiles.write_rows(dv, 1, keys, p.first_key + k0, b.dv, b.dkv_stride);
  }
  if (p.keys == 0) tiles.clear_queries();
}

}  // namespace

void attention_backward_on_tiles(const AttentionBackward& b, cudaStream_t stream) {
  const Attention& t = b.of;
  const auto go = [&](auto w) {
    constexpr int W = decltype(w)::value;
    const Plan plan = plan_of(t, W);
    const auto run = [&](void (*kernel)(Planned<AttentionBackward>), int weight_stride) {
      const int64_t elements = 2 * (plan.query_tile + plan.key_tile) * kTileStride<W> + 2 * plan.query_tile * weight_stride;
      launch(kernel, t.sentences * t.heads + t.idle + b.idle_keys, std::max(plan.query_tile, plan.key_tile) / kWarpRows * kWarp,
             elements * int64_t{sizeof(uint16_t)}, stream, Planned<AttentionBackward>{b, plan});
    };
    if (t.longest_query > kTile || t.longest_key > kTile)
      run(attention_tiles_backward_kernel<W>, kWeightStride<kEights>);
    else if (t.longest_key > kTile / 2)
      run(attention_tile_backward_kernel<W, kEights>, kWeightStride<kEights>);
    else
      run(attention_tile_backward_kernel<W, kEights / 2>, kWeightStride<kEights / 2>);
  };
  t.width <= kWarp ? go(std::integral_constant<int, kWarp>{}) : go(std::integral_constant<int, kTile>{});
}

}  // namespace starling::STARLING_CUDA::kernels
