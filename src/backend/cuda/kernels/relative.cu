// The probabilities of attention by relative position: a block has a tile of queries and goes through the tiles of keys, as attention.cu
// does, whose denominators it takes.
#include "backend/cuda/kernels/attention_tiles.cuh"

namespace starling::STARLING_CUDA::kernels {
namespace {

template <class T, int W>
__global__ void __launch_bounds__(kMostThreads) relative_mass_kernel(Planned<Attention> all) {
  const Attention& t = all.task;
  const Plan& plan = all.plan;
  const Relative& relative = t.relative;
  const int64_t work = t.sentences * plan.query_tiles * t.heads;
  if (blockIdx.x >= work) return clear_idle<T>(t.query, t.sentences, blockIdx.x - work, relative.mass, relative.stride, relative.stride);
  const Part p = part_of(t, 1, plan.query_tiles, plan.query_tile);
  if (p.queries <= 0) return;
  clear_bins<T>(relative, p, relative.mass);
  float *const queries = shared<float>(), *const keys = queries + plan.query_tile * kStride<W>;
  const int near = lane() % kLanes, own = warp() * kWarpRows + lane() / kLanes;
  const int64_t column = p.head * t.width;
  const T *const q = static_cast<const T*>(t.q) + p.first_row * t.q_stride + column, *const k = static_cast<const T*>(t.k) +
                                                                                                p.first_key * t.kv_stride + column;
  const uint64_t mask_key = dropout_head_key(t.mask.key, t.first_head + p.head);
  const int end = visible(t, p.keys, p.first_query + p.queries - 1);
  for (int from = 0; from < end; from += plan.key_tile) {
    const int here = end - from < plan.key_tile ? end - from : plan.key_tile;
    float s[kRows][kKeys] = {};
    for (int64_t c = 0; c < t.width; c += W) {
      __syncthreads();
      load_tile<W>(q + c, t.q_stride, p.queries, t.width - c, plan.scale, plan.whole, queries);
      load_tile<W>(k + from * t.kv_stride + c, t.kv_stride, here, t.width - c, 1, plan.whole, keys);
      __syncthreads();
      if (warp() * kWarpRows < p.queries) multiply_rows<W>(queries + own * kStride<W>, keys + near * kStride<W>, here, s);
    }
    if (warp() * kWarpRows >= p.queries) continue;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int i = own + 4 * r, row = p.first_row + i, limit = i < p.queries ? visible(t, p.keys, p.first_query + i) - from : 0;
      const uint32_t kept = i < p.queries ? kept_keys(t.mask, mask_key, row, from, near) : 0;
      const float lse = i < p.queries ? t.lse[int64_t{row} * t.heads + p.head] : 0;
      Bins<T> bins(relative, p.head, relative.mass, row);
#pragma unroll
      for (int n = 0; n < kKeys; ++n) {
        const int j = near + n * kLanes, ahead = from + j - p.first_query - i;
        if (j >= limit || j >= here) continue;
        const float score = s[r][n] + plan.scale * relative.scores[row * relative.stride + bin_at(relative, p.head, ahead)];
        bins.add(ahead, kept >> n & 1 ? expf(score - lse) * t.mask.scale : 0.0f);
      }
      bins.finish(near == 0 && i < p.queries);
    }
  }
}

}  // namespace

void relative_mass(Type type, const Attention& t, cudaStream_t stream) {
  by_shape(type, t.width, [&](auto e, auto w) {
    using T = decltype(e);
    constexpr int W = decltype(w)::value;
    Plan plan = plan_of(t, W);
    plan.whole = whole_quads<T>({t.width, t.q_stride, t.kv_stride}, {t.q, t.k});
    const int64_t floats = (plan.query_tile + plan.key_tile) * kStride<W>;
    launch(relative_mass_kernel<T, W>, t.sentences * plan.query_tiles * t.heads + t.idle, plan.query_tile / kWarpRows * kWarp,
           floats * static_cast<int64_t>(sizeof(float)), stream, Planned<Attention>{t, plan});
  });
}

}  // namespace starling::STARLING_CUDA::kernels
