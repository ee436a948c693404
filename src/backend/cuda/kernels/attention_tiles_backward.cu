// The gradient of attention on tensor cores: a block has a sentence and head and goes through the pairs of tiles in a fixed order, as in
// attention_backward.cu, which says more about sentences of many tiles.
#include "backend/cuda/kernels/attention_tiles.cuh"

namespace starling::STARLING_CUDA::kernels {
namespace {

// out [16, W] += the transpose of weights [rows, 16] at `weights`, times x [rows, W].
template <int W>
__device__ __forceinline__ void add_turned(const uint16_t* weights, const uint16_t* x, int rows, float (&out)[W / 8][4]) {
  for (int row = 0; row < rows; row += 16) {
    uint32_t left[4];
    load_left_turned(left, weights + row * kTileStride<kTile>, kTileStride<kTile>);
#pragma unroll
    for (int c = 0; c < W / 16; ++c) {
      uint32_t right[4];
      load_right(right, x + row * kTileStride<W> + 16 * c, kTileStride<W>);
      multiply_tiles(out[2 * c], left, right[0], right[1]);
      multiply_tiles(out[2 * c + 1], left, right[2], right[3]);
    }
  }
}

template <int W>
__global__ void __launch_bounds__(kMostThreads, 2) attention_tiles_backward_kernel(Planned<AttentionBackward> all) {
  const AttentionBackward& b = all.task;
  const Attention& t = b.of;
  const Plan& plan = all.plan;
  const int64_t D = t.heads * t.width, work = t.sentences * t.heads;
  if (blockIdx.x >= work + t.idle) {
    clear_idle<Bf16>(t.key, t.sentences, blockIdx.x - work - t.idle, b.dk, b.dkv_stride, D);
    return clear_idle<Bf16>(t.key, t.sentences, blockIdx.x - work - t.idle, b.dv, b.dkv_stride, D);
  }
  if (blockIdx.x >= work) return clear_idle<Bf16>(t.query, t.sentences, blockIdx.x - work, b.dq, b.dq_stride, D);
  const Part p = part_of(t, 1, 1, 0x7fffffff);
  const OwnRows own;
  const uint64_t mask_key = dropout_head_key(t.mask.key, t.first_head + p.head);
  auto* const q_tile = shared<uint16_t>();
  uint16_t* const dy_tile = q_tile + plan.query_tile * kTileStride<W>;
  uint16_t* const k_tile = dy_tile + plan.query_tile * kTileStride<W>;
  uint16_t* const v_tile = k_tile + plan.key_tile * kTileStride<W>;
  uint16_t* const dropped = v_tile + plan.key_tile * kTileStride<W>;  // [query_tile, key_tile], as is
  uint16_t* const dscores = dropped + plan.query_tile * kTileStride<kTile>;

  const auto tile_queries = [&](int q0) { return p.queries - q0 < plan.query_tile ? p.queries - q0 : plan.query_tile; };
  const auto tile_keys = [&](int k0) { return p.keys - k0 < plan.key_tile ? p.keys - k0 : plan.key_tile; };
  const auto see = [&](int q0, int queries, int k0) { return k0 < visible(t, p.keys, q0 + queries - 1); };
  const auto load = [&](const void* x, int64_t stride, int row, int rows, uint16_t* tile) {
    load_bf16_tile<W>(static_cast<const Bf16*>(x) + row * stride + p.head * t.width, stride, rows, t.width, tile);
  };
  const auto load_queries = [&](int q0) {
    load(t.q, t.q_stride, p.first_row + q0, tile_queries(q0), q_tile);
    load(b.dy, D, p.first_row + q0, tile_queries(q0), dy_tile);
  };
  const auto load_keys = [&](int k0) {
    load(t.k, t.kv_stride, p.first_key + k0, tile_keys(k0), k_tile);
    load(t.v, t.kv_stride, p.first_key + k0, tile_keys(k0), v_tile);
  };
  // Probabilities s, and gradients g of them, of this thread's queries from q0 on and keys from k0 on; kept: see kept_pairs.
  const auto probabilities = [&](int q0, int k0, float(&s)[kEights][4], float(&g)[kEights][4], uint32_t(&kept)[2]) {
    const int queries = tile_queries(q0), keys = tile_keys(k0);
    products_of_rows<W>(q_tile + own.first * kTileStride<W>, k_tile, keys, s);
    products_of_rows<W>(dy_tile + own.first * kTileStride<W>, v_tile, keys, g);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int i = own.row(r), row = p.first_row + q0 + i, limit = i < queries ? visible(t, p.keys, q0 + i) - k0 : 0;
      const float lse = i < queries ? t.lse[int64_t{row} * t.heads + p.head] : 0;
      kept[r] = i < queries ? kept_pairs(t.mask, mask_key, row, k0, own.near) : 0;
#pragma unroll
      for (int n = 0; n < kEights; ++n) {
        if (8 * n >= keys) break;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float &x = s[n][2 * r + e], &gradient = g[n][2 * r + e];
          x = 8 * n + 2 * own.near + e < limit ? expf(x * plan.scale - lse) : 0;
          gradient = kept[r] >> (2 * n + e) & 1 ? gradient * t.mask.scale : 0;
        }
      }
    }
  };
  const auto dot_of = [&](const float(&s)[kEights][4], const float(&g)[kEights][4], int r) {
    float sum = 0;
#pragma unroll
    for (int n = 0; n < kEights; ++n) sum = fmaf(s[n][2 * r], g[n][2 * r], fmaf(s[n][2 * r + 1], g[n][2 * r + 1], sum));
    return sum;
  };

  // The sum of each query's probabilities times their gradients; with several tiles of keys it is computed before everything else.
  float* const dots = b.dots + p.first_row * t.heads + p.head;
  if (p.keys > plan.key_tile)
    for (int q0 = 0; q0 < p.queries; q0 += plan.query_tile) {
      float sums[2] = {};
      for (int k0 = 0; k0 < p.keys && see(q0, tile_queries(q0), k0); k0 += plan.key_tile) {
        __syncthreads();
        load_queries(q0);
        load_keys(k0);
        __syncthreads();
        if (own.first >= tile_queries(q0)) continue;
        float s[kEights][4] = {}, g[kEights][4] = {};
        uint32_t kept[2];
        probabilities(q0, k0, s, g, kept);
        for (int r = 0; r < 2; ++r) sums[r] += dot_of(s, g, r);
      }
      for (int r = 0; r < 2; ++r) {
        const float sum = reduce_row(sums[r], Sum{});
        if (own.near == 0 && own.row(r) < tile_queries(q0)) dots[(q0 + own.row(r)) * t.heads] = sum;
      }
    }

  for (int k0 = 0; k0 < p.keys; k0 += plan.key_tile) {
    const int keys = tile_keys(k0);
    float dk[W / 8][4] = {}, dv[W / 8][4] = {};  // of the warp's 16 keys, as it has queries
    for (int q0 = 0; q0 < p.queries; q0 += plan.query_tile) {
      const int queries = tile_queries(q0);
      if (!see(q0, queries, k0)) continue;
      __syncthreads();
      load_queries(q0);
      load_keys(k0);
      __syncthreads();
      float dq[W / 8][4] = {};
      if (own.first < queries) {
        float s[kEights][4] = {}, g[kEights][4] = {};
        uint32_t kept[2];
        probabilities(q0, k0, s, g, kept);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int i = own.row(r);
          float product = reduce_row(dot_of(s, g, r), Sum{});
          if (p.keys > plan.key_tile && i < queries) product = dots[(q0 + i) * t.heads];
#pragma unroll
          for (int n = 0; n < kEights; ++n) {
            if (8 * n >= plan.key_tile) break;
            float drop[2];
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              float &x = s[n][2 * r + e], &gradient = g[n][2 * r + e];
              drop[e] = kept[r] >> (2 * n + e) & 1 ? x * t.mask.scale : 0;
              gradient = x * (gradient - product);
            }
            const int at = i * kTileStride<kTile> + 8 * n + 2 * own.near;
            *reinterpret_cast<uint32_t*>(dropped + at) = pair_of(drop[0], drop[1]);
            *reinterpret_cast<uint32_t*>(dscores + at) = pair_of(g[n][2 * r], g[n][2 * r + 1]);
          }
        }
        add_weighted_rows<W>(g, k_tile, keys, dq);
      }
      __syncthreads();
      if (own.first < keys) {
        add_turned<W>(dropped + own.first, dy_tile, queries, dv);
        add_turned<W>(dscores + own.first, q_tile, queries, dk);
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
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (own.row(r) >= keys) continue;
      const int64_t at = (p.first_key + k0 + own.row(r)) * b.dkv_stride + p.head * t.width + 2 * own.near;
#pragma unroll
      for (int c = 0; c < W / 8; ++c) {
        if (8 * c >= t.width) break;
        *reinterpret_cast<uint32_t*>(static_cast<Bf16*>(b.dk) + at + 8 * c) =
            pair_of(plan.scale * dk[c][2 * r], plan.scale * dk[c][2 * r + 1]);
        *reinterpret_cast<uint32_t*>(static_cast<Bf16*>(b.dv) + at + 8 * c) = pair_of(dv[c][2 * r], dv[c][2 * r + 1]);
      }
    }
  }
  if (p.keys == 0)
    for (int64_t i = threadIdx.x; i < p.queries * t.width; i += blockDim.x)
      static_cast<Bf16*>(b.dq)[(p.first_row + i / t.width) * b.dq_stride + p.head * t.width + i % t.width] = narrow<Bf16>(0);
}

}  // namespace

void attention_backward_on_tiles(const AttentionBackward& b, cudaStream_t stream) {
  const Attention& t = b.of;
  const auto go = [&](auto w) {
    constexpr int W = decltype(w)::value;
    const Plan plan = plan_of(t, W);
    const int64_t elements = 2 * (plan.query_tile + plan.key_tile) * kTileStride<W> + 2 * plan.query_tile * kTileStride<kTile>;
    launch(attention_tiles_backward_kernel<W>, t.sentences * t.heads + t.idle + b.idle_keys,
           std::max(plan.query_tile, plan.key_tile) / kWarpRows * kWarp, elements * int64_t{sizeof(uint16_t)}, stream,
           Planned<AttentionBackward>{b, plan});
  };
  t.width <= kWarp ? go(std::integral_constant<int, kWarp>{}) : go(std::integral_constant<int, kTile>{});
}

}  // namespace starling::STARLING_CUDA::kernels
