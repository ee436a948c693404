// The gradient of attention: a block has a sentence and head and goes through the pairs of tiles in a fixed order. Usual sentences are one
// pair. For longer ones, the gradient of queries is summed over tiles of keys in working memory, and what the softmax subtracts, the sum of
// probabilities times their gradients, is computed in a separate pass before.
#include "backend/cuda/kernels/attention_tiles.cuh"

namespace starling::STARLING_CUDA::kernels {
namespace {

template <class T, int W, bool kRelative>
__global__ void __launch_bounds__(kMostThreads, 1) attention_backward_kernel(Planned<AttentionBackward> all) {
  const AttentionBackward& b = all.task;
  const Attention& t = b.of;
  const Plan& plan = all.plan;
  const int64_t D = t.heads * t.width, work = t.sentences * t.heads * plan.pieces;
  if (blockIdx.x >= work + t.idle) {
    clear_idle<T>(t.key, t.sentences, blockIdx.x - work - t.idle, b.dk, b.dkv_stride, D);
    return clear_idle<T>(t.key, t.sentences, blockIdx.x - work - t.idle, b.dv, b.dkv_stride, D);
  }
  if (blockIdx.x >= work) {
    if constexpr (kRelative)
      clear_idle<T>(t.query, t.sentences, blockIdx.x - work, t.relative.dscores, t.relative.stride, t.relative.stride);
    return clear_idle<T>(t.query, t.sentences, blockIdx.x - work, b.dq, b.dq_stride, D);
  }
  const Part p = part_of(t, plan.pieces, 1, 0x7fffffff);
  if constexpr (kRelative)
    if (p.piece == 0) clear_bins<T>(t.relative, p, t.relative.dscores);
  const int near = lane() % kLanes, group = lane() / kLanes, first_own = warp() * kWarpRows, own = first_own + group;
  const int piece = p.piece * W;

  float *const q_tile = shared<float>(), *const dy_tile = q_tile + plan.query_tile * kStride<W>;
  float* const dscores = dy_tile + plan.query_tile * kStride<W>;  // [query_tile, kScores]
  float* const k_tile = dscores + plan.query_tile * kScores;
  float* const v_tile = k_tile + plan.key_tile * kStride<W>;
  float* const dropped = v_tile;  // [query_tile, kScores] in the place of the values, when these have been used

  const auto load = [&](const void* x, int64_t stride, int row, int rows, int c, float scale, float* tile) {
    load_tile<W>(static_cast<const T*>(x) + row * stride + p.head * t.width + c, stride, rows, t.width - c, scale, plan.whole, tile);
  };

  // Probabilities s, and gradients g of them, of this thread's queries from q0 on and keys from k0 on; kept: see kept_keys.
  const auto probabilities = [&](int q0, int k0, int queries, int keys, float(&s)[kRows][kKeys], float(&g)[kRows][kKeys],
                                 uint32_t(&kept)[kRows]) {
    for (int c = 0; c < t.width; c += W) {
      __syncthreads();
      load(t.q, t.q_stride, p.first_row + q0, queries, c, plan.scale, q_tile);
      load(b.dy, D, p.first_row + q0, queries, c, 1, dy_tile);
      load(t.k, t.kv_stride, p.first_key + k0, keys, c, 1, k_tile);
      load(t.v, t.kv_stride, p.first_key + k0, keys, c, 1, v_tile);
      __syncthreads();
      if (first_own >= queries) continue;
      multiply_rows<W>(q_tile + own * kStride<W>, k_tile + near * kStride<W>, keys, s);
      multiply_rows<W>(dy_tile + own * kStride<W>, v_tile + near * kStride<W>, keys, g);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int i = own + 4 * r;
      const int row = p.first_row + q0 + i;
      const int limit = i < queries ? visible(t, p.keys, q0 + i) - k0 : 0;
      const float lse = i < queries ? t.lse[int64_t{row} * t.heads + p.head] : 0;
      kept[r] = i < queries ? kept_keys(t.mask, dropout_head_key(t.mask.key, t.first_head + p.head), row, k0, near) : 0;
#pragma unroll
      for (int n = 0; n < kKeys; ++n) {
        if constexpr (kRelative)
          if (i < queries) {
            const int64_t at = row * t.relative.stride + bin_at(t.relative, p.head, k0 + near + n * kLanes - q0 - i);
            s[r][n] += plan.scale * t.relative.scores[at];
            g[r][n] += t.relative.dmass[at];
          }
        s[r][n] = near + n * kLanes < limit ? expf(s[r][n] - lse) : 0;
        g[r][n] = kept[r] >> n & 1 ? g[r][n] * t.mask.scale : 0;
      }
    }
  };
  const auto tile_queries = [&](int q0) { return p.queries - q0 < plan.query_tile ? p.queries - q0 : plan.query_tile; };
  const auto tile_keys = [&](int k0) { return p.keys - k0 < plan.key_tile ? p.keys - k0 : plan.key_tile; };
  const auto see = [&](int q0, int queries, int k0) { return k0 < visible(t, p.keys, q0 + queries - 1); };

  // The sum of each query's probabilities times their gradients; with several tiles of keys it is computed before everything else.
  float* const dots = b.dots + (p.piece * b.rows + p.first_row) * t.heads + p.head;
  if (p.keys > plan.key_tile)
    for (int q0 = 0; q0 < p.queries; q0 += plan.query_tile) {
      float sums[kRows] = {};
      for (int k0 = 0; k0 < p.keys && see(q0, tile_queries(q0), k0); k0 += plan.key_tile) {
        float s[kRows][kKeys] = {}, g[kRows][kKeys] = {};
        uint32_t kept[kRows];
        probabilities(q0, k0, tile_queries(q0), tile_keys(k0), s, g, kept);
#pragma unroll
        for (int r = 0; r < kRows; ++r)
#pragma unroll
          for (int n = 0; n < kKeys; ++n) sums[r] = fmaf(s[r][n], g[r][n], sums[r]);
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        sums[r] = reduce_neighbours(sums[r], Sum{});
        if (near == 0 && own + 4 * r < tile_queries(q0)) dots[(q0 + own + 4 * r) * t.heads] = sums[r];
      }
    }

  for (int k0 = 0; k0 < p.keys; k0 += plan.key_tile) {
    const int keys = tile_keys(k0);
    float4 dk[kRows][W / kWarp] = {}, dv[kRows][W / kWarp] = {};  // of keys first_own + 4 group + r
    for (int q0 = 0; q0 < p.queries; q0 += plan.query_tile) {
      const int queries = tile_queries(q0);
      if (!see(q0, queries, k0)) continue;
      {
        float s[kRows][kKeys] = {}, g[kRows][kKeys] = {};
        uint32_t kept[kRows];
        probabilities(q0, k0, queries, keys, s, g, kept);
        __syncthreads();
#pragma unroll
        for (int r = 0; r < kRows && first_own < queries; ++r) {
          const int i = own + 4 * r;
          float product = 0;
#pragma unroll
          for (int n = 0; n < kKeys; ++n) product = fmaf(s[r][n], g[r][n], product);
          product = reduce_neighbours(product, Sum{});
          if (p.keys > plan.key_tile && i < queries) product = dots[(q0 + i) * t.heads];
#pragma unroll
          for (int n = 0; n < kKeys; ++n) {
            if (n * kLanes >= keys) break;
            dropped[i * kScores + near + n * kLanes] = kept[r] >> n & 1 ? s[r][n] * t.mask.scale : 0;
            dscores[i * kScores + near + n * kLanes] = s[r][n] * (g[r][n] - product);
          }
        }
      }
      if constexpr (kRelative) {
#pragma unroll 1  // from memory that this thread has just written, since registers are full
        for (int r = 0; r < kRows && first_own < queries && p.piece == 0; ++r) {
          const int i = own + 4 * r;
          Bins<T> bins(t.relative, p.head, t.relative.dscores, p.first_row + q0 + i);
#pragma unroll 1
          for (int j = near; j < keys && i < queries; j += kLanes) bins.add(k0 + j - q0 - i, plan.scale * dscores[i * kScores + j]);
          bins.finish(near == 0 && i < queries);
        }
      }
      __syncthreads();
      if (plan.pieces > 1) {
        load(t.q, t.q_stride, p.first_row + q0, queries, piece, plan.scale, q_tile);
        load(b.dy, D, p.first_row + q0, queries, piece, 1, dy_tile);
        load(t.k, t.kv_stride, p.first_key + k0, keys, piece, 1, k_tile);
        __syncthreads();
      }
      if (first_own < keys) {
        const int key = first_own + group * kRows;
        for (int i = 0; i < queries; ++i) {
          const float4 drop = quad_at(dropped + i * kScores + key), score = quad_at(dscores + i * kScores + key);
#pragma unroll
          for (int m = 0; m < W / kWarp; ++m) {
            const float4 x = quad_at(dy_tile + i * kStride<W> + m * kWarp + kQuad * near),
                         y = quad_at(q_tile + i * kStride<W> + m * kWarp + kQuad * near);
            add_scaled(dv[0][m], drop.x, x), add_scaled(dv[1][m], drop.y, x), add_scaled(dv[2][m], drop.z, x),
                add_scaled(dv[3][m], drop.w, x);
            add_scaled(dk[0][m], score.x, y), add_scaled(dk[1][m], score.y, y), add_scaled(dk[2][m], score.z, y),
                add_scaled(dk[3][m], score.w, y);
          }
        }
      }
      if (first_own >= queries) continue;
      float4 dq[kRows][W / kWarp] = {};
      add_products<W>(dscores + own * kScores, k_tile + kQuad * near, keys, dq);
      const bool last = !see(q0, queries, k0 + plan.key_tile);
#pragma unroll
      for (int r = 0; r < kRows; ++r)
#pragma unroll
        for (int m = 0; m < W / kWarp; ++m) {
          const int64_t row = p.first_row + q0 + own + 4 * r, c = piece + m * kWarp + kQuad * near,
                        left = own + 4 * r < queries ? t.width - c : 0;
          float* const sums = b.sums + row * D + p.head * t.width + c;
          if (k0 > 0) add_scaled(dq[r][m], 1, load_quad(sums, left, plan.whole));
          if (last)
            store_quad(static_cast<T*>(b.dq) + row * b.dq_stride + p.head * t.width + c, scaled(dq[r][m], plan.scale), left, plan.whole);
          else
            store_quad(sums, dq[r][m], left, plan.whole);
        }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int m = 0; m < W / kWarp; ++m) {
        const int64_t key = first_own + group * kRows + r, c = piece + m * kWarp + kQuad * near, left = key < keys ? t.width - c : 0;
        const int64_t at = (p.first_key + k0 + key) * b.dkv_stride + p.head * t.width + c;
        store_quad(static_cast<T*>(b.dk) + at, dk[r][m], left, plan.whole);
        store_quad(static_cast<T*>(b.dv) + at, dv[r][m], left, plan.whole);
      }
  }
  if (p.keys == 0)
    for (int64_t i = threadIdx.x; i < p.queries * t.width; i += blockDim.x)
      static_cast<T*>(b.dq)[(p.first_row + i / t.width) * b.dq_stride + p.head * t.width + i % t.width] = narrow<T>(0);
}

}  // namespace

bool many_keys(int64_t longest_key) { return longest_key > kTile; }
int64_t dot_parts(int64_t width) { return blocks_for(width, 2 * kWarp); }
void attention_backward(Type type, const AttentionBackward& b, cudaStream_t stream) {
  const Attention& t = b.of;
  if (fits_tiles(type, t, {b.dq_stride, b.dkv_stride}, {b.dy, b.dq, b.dk, b.dv})) return attention_backward_on_tiles(b, stream);
  by_shape(type, t.width, [&](auto e, auto w) {
    using T = decltype(e);
    constexpr int W = decltype(w)::value;
    Plan plan = plan_of(t, W);
    plan.whole = whole_quads<T>({t.width, t.q_stride, t.kv_stride, b.dq_stride, b.dkv_stride}, {t.q, t.k, t.v, b.dy, b.dq, b.dk, b.dv});
    const int64_t floats = (2 * plan.query_tile + plan.key_tile) * kStride<W> + plan.query_tile * kScores +
                           std::max(plan.key_tile * kStride<W>, plan.query_tile * kScores);
    launch(t.relative.reach > 0 ? attention_backward_kernel<T, W, true> : attention_backward_kernel<T, W, false>,
           t.sentences * t.heads * plan.pieces + t.idle + b.idle_keys, std::max(plan.query_tile, plan.key_tile) / kWarpRows * kWarp,
           floats * static_cast<int64_t>(sizeof(float)), stream, Planned<AttentionBackward>{b, plan});
  });
}

}  // namespace starling::STARLING_CUDA::kernels
