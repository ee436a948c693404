// Attention by sentence and head: a block has a tile of queries and goes through the tiles of keys (online softmax).
#include "backend/cuda/kernels/attention_tiles.cuh"

namespace starling::STARLING_CUDA::kernels {
namespace {

template <class T, int W, bool kRelative>
__global__ void __launch_bounds__(kMostThreads, 3) attention_kernel(Planned<Attention> all) {
  const Attention& t = all.task;
  const Plan& plan = all.plan;
  const int64_t D = t.heads * t.width, work = t.sentences * plan.query_tiles * t.heads * plan.pieces;
  if (blockIdx.x >= work) return clear_idle<T>(t.query, t.sentences, blockIdx.x - work, t.y, D, D);
  const Part p = part_of(t, plan.pieces, plan.query_tiles, plan.query_tile);
  if (p.queries <= 0) return;
  float *const queries = shared<float>(), *const keys = queries + plan.query_tile * kStride<W>,
               *const values = keys + plan.key_tile * kStride<W>;
  const int near = lane() % kLanes, own = warp() * kWarpRows + lane() / kLanes;
  float* const probabilities = values + plan.key_tile * kStride<W> + own * kScores;
  const int64_t column = p.head * t.width;
  const T *const q = static_cast<const T*>(t.q) + p.first_row * t.q_stride + column,
                 *const k = static_cast<const T*>(t.k) + p.first_key * t.kv_stride + column,
                 *const v = static_cast<const T*>(t.v) + p.first_key * t.kv_stride + column;
  const uint64_t mask_key = dropout_head_key(t.mask.key, t.first_head + p.head);
  const int end = visible(t, p.keys, p.first_query + p.queries - 1);
  float top[kRows], sum[kRows] = {};
  float4 out[kRows][W / kWarp] = {};
  for (float& x : top) x = -INFINITY;
  for (int from = 0; from < end; from += plan.key_tile) {
    const int here = end - from < plan.key_tile ? end - from : plan.key_tile;
    const bool busy = warp() * kWarpRows < p.queries && from < visible(t, p.keys, p.first_query + warp() * kWarpRows + kWarpRows - 1);
    float s[kRows][kKeys] = {};
    if (from > 0) __syncthreads();
    load_tile<W>(v + from * t.kv_stride + p.piece * W, t.kv_stride, here, t.width - p.piece * W, 1, plan.whole, values);
    for (int64_t c = 0; c < t.width; c += W) {
      if (c > 0) __syncthreads();
      if (from == 0 || plan.pieces > 1) load_tile<W>(q + c, t.q_stride, p.queries, t.width - c, plan.scale, plan.whole, queries);
      load_tile<W>(k + from * t.kv_stride + c, t.kv_stride, here, t.width - c, 1, plan.whole, keys);
      __syncthreads();
      if (busy) multiply_rows<W>(queries + own * kStride<W>, keys + near * kStride<W>, here, s);
    }
    if (!busy) continue;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int i = own + 4 * r, limit = visible(t, p.keys, p.first_query + i) - from;
      float largest = top[r];
#pragma unroll
      for (int n = 0; n < kKeys; ++n) {
        if (n * kLanes >= here) break;
        if constexpr (kRelative)
          if (i < p.queries)
            s[r][n] += plan.scale * t.relative.scores[(p.first_row + i) * t.relative.stride +
                                                      bin_at(t.relative, p.head, from + near + n * kLanes - p.first_query - i)];
        if (near + n * kLanes >= limit) s[r][n] = -INFINITY;
        largest = fmaxf(largest, s[r][n]);
      }
      largest = reduce_neighbours(largest, Largest{});
      const float correction = expf(top[r] - largest);
      const uint32_t kept = i < p.queries ? kept_keys(t.mask, mask_key, p.first_row + i, from, near) : 0;
      top[r] = largest;
      sum[r] *= correction;
#pragma unroll
      for (int n = 0; n < kKeys; ++n) {
        if (n * kLanes >= here) break;
        const float e = expf(s[r][n] - largest);
        sum[r] += e;
        probabilities[4 * r * kScores + near + n * kLanes] = kept >> n & 1 ? e * t.mask.scale : 0.0f;
      }
#pragma unroll
      for (int m = 0; m < W / kWarp; ++m) out[r][m] = scaled(out[r][m], correction);
    }
    __syncwarp();
    add_products<W>(probabilities, values + kQuad * near, here, out);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int i = own + 4 * r;
    const float total = reduce_neighbours(sum[r], Sum{}), share = total == 0 ? 0 : 1 / total;
    if (i >= p.queries) continue;
    if (near == 0 && p.piece == 0) t.lse[(p.first_row + i) * t.heads + p.head] = top[r] + logf(total);
#pragma unroll
    for (int m = 0; m < W / kWarp; ++m) {
      const int64_t c = p.piece * W + m * kWarp + kQuad * near;
      store_quad(static_cast<T*>(t.y) + (p.first_row + i) * D + column + c, scaled(out[r][m], share), t.width - c, plan.whole);
    }
  }
}

}  // namespace

void attention(Type type, const Attention& t, cudaStream_t stream) {
  if (fits_tiles(type, t, {}, {t.y})) return attention_on_tiles(t, stream);
  by_shape(type, t.width, [&](auto e, auto w) {
    using T = decltype(e);
    constexpr int W = decltype(w)::value;
    Plan plan = plan_of(t, W);
    plan.whole = whole_quads<T>({t.width, t.q_stride, t.kv_stride}, {t.q, t.k, t.v, t.y});
    const int64_t floats = (plan.query_tile + 2 * plan.key_tile) * kStride<W> + plan.query_tile * kScores;
    launch(t.relative.reach > 0 ? attention_kernel<T, W, true> : attention_kernel<T, W, false>,
           t.sentences * plan.query_tiles * t.heads * plan.pieces + t.idle, plan.query_tile / kWarpRows * kWarp,
           floats * static_cast<int64_t>(sizeof(float)), stream, Planned<Attention>{t, plan});
  });
}

}  // namespace starling::STARLING_CUDA::kernels
