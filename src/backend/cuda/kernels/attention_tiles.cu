// Attention on tensor cores, after FlashAttention-2 (Dao 2023): a block has a tile of queries of a sentence and head and goes through the
// tiles of keys, with the softmax so far in registers.
#include "backend/cuda/kernels/attention_tiles.cuh"

namespace starling::STARLING_CUDA::kernels {
namespace {

template <int W>
__global__ void __launch_bounds__(kMostThreads) attention_tiles_kernel(Planned<Attention> all) {
  const Attention& t = all.task;
  const Plan& plan = all.plan;
  const int64_t D = t.heads * t.width, work = t.sentences * plan.query_tiles * t.heads;
  if (blockIdx.x >= work) return clear_idle<Bf16>(t.query, t.sentences, blockIdx.x - work, t.y, D, D);
  const Part p = part_of(t, 1, plan.query_tiles, plan.query_tile);
  if (p.queries <= 0) return;
  auto* const queries = shared<uint16_t>();
  uint16_t *const keys = queries + plan.query_tile * kTileStride<W>, *const values = keys + plan.key_tile * kTileStride<W>;
  const OwnRows own;
  const int64_t column = p.head * t.width;
  const auto* const k = static_cast<const Bf16*>(t.k) + p.first_key * t.kv_stride + column;
  const auto* const v = static_cast<const Bf16*>(t.v) + p.first_key * t.kv_stride + column;
  const uint64_t mask_key = dropout_head_key(t.mask.key, t.first_head + p.head);
  load_bf16_tile<W>(static_cast<const Bf16*>(t.q) + p.first_row * t.q_stride + column, t.q_stride, p.queries, t.width, queries);

  const int end = visible(t, p.keys, p.first_query + p.queries - 1);
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  float out[W / 8][4] = {};
  for (int from = 0; from < end; from += plan.key_tile) {
    const int here = end - from < plan.key_tile ? end - from : plan.key_tile;
    if (from > 0) __syncthreads();
    load_bf16_tile<W>(k + from * t.kv_stride, t.kv_stride, here, t.width, keys);
    load_bf16_tile<W>(v + from * t.kv_stride, t.kv_stride, here, t.width, values);
    __syncthreads();
    if (own.first >= p.queries || from >= visible(t, p.keys, p.first_query + own.first + kWarpRows - 1)) continue;
    float s[kEights][4] = {};
    products_of_rows<W>(queries + own.first * kTileStride<W>, keys, here, s);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int i = own.row(r), limit = visible(t, p.keys, p.first_query + i) - from;
      float largest = top[r];
#pragma unroll
      for (int n = 0; n < kEights; ++n) {
        if (8 * n >= here) break;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[n][2 * r + e];
          x = 8 * n + 2 * own.near + e < limit ? x * plan.scale : -INFINITY;
          largest = fmaxf(largest, x);
        }
      }
      largest = reduce_row(largest, Largest{});
      const float correction = expf(top[r] - largest);
      const uint32_t kept = i < p.queries ? kept_pairs(t.mask, mask_key, p.first_row + i, from, own.near) : 0;
      top[r] = largest;
      sum[r] *= correction;
#pragma unroll
      for (int n = 0; n < kEights; ++n) {  // those beyond stay zero
        if (8 * n >= here) break;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[n][2 * r + e];
          x = expf(x - largest);
          sum[r] += x;
          x = kept >> (2 * n + e) & 1 ? x * t.mask.scale : 0.0f;
        }
      }
#pragma unroll
      for (int c = 0; c < W / 8; ++c) {
        out[c][2 * r] *= correction;
        out[c][2 * r + 1] *= correction;
      }
    }
    add_weighted_rows<W>(s, values, here, out);
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i = own.row(r);
    const float total = reduce_row(sum[r], Sum{}), share = total == 0 ? 0 : 1 / total;
    if (i >= p.queries) continue;
    if (own.near == 0) t.lse[(p.first_row + i) * t.heads + p.head] = top[r] + logf(total);
    auto* const y = static_cast<Bf16*>(t.y) + (p.first_row + i) * D + column;
#pragma unroll
    for (int c = 0; c < W / 8; ++c)
      if (8 * c < t.width)
        *reinterpret_cast<uint32_t*>(y + 8 * c + 2 * own.near) = pair_of(share * out[c][2 * r], share * out[c][2 * r + 1]);
  }
}

}  // namespace

void attention_on_tiles(const Attention& t, cudaStream_t stream) {
  const auto go = [&](auto w) {
    constexpr int W = decltype(w)::value;
    const Plan plan = plan_of(t, W);
    launch(attention_tiles_kernel<W>, t.sentences * plan.query_tiles * t.heads + t.idle, plan.query_tile / kWarpRows * kWarp,
           (plan.query_tile + 2 * plan.key_tile) * kTileStride<W> * int64_t{sizeof(uint16_t)}, stream, Planned<Attention>{t, plan});
  };
  t.width <= kWarp ? go(std::integral_constant<int, kWarp>{}) : go(std::integral_constant<int, kTile>{});
}

}  // namespace starling::STARLING_CUDA::kernels
