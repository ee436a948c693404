// What both directions of attention share. A block has tiles of up to 64 queries and 64 keys in shared memory, in f32. A warp has 16 of the
// queries, and a thread the products of four of them (group + 4 r) with eight keys (near + 8 n), or four of them in the columns 4 near + 32
// m. Heads wider than a tile are processed in pieces: scores are summed over all pieces, and each block has one piece of the results.
#pragma once

#include <algorithm>

#include "backend/cuda/kernels/attention.h"
#include "backend/cuda/kernels/quads.cuh"

namespace starling::STARLING_CUDA::kernels {

constexpr int kTile = 64, kWarpRows = 16, kMostThreads = kTile / kWarpRows * kWarp;
constexpr int kRows = 4, kKeys = kTile / kLanes;  // of a thread
constexpr int kScores = kTile + kQuad;            // row stride of scores in floats, so that rows begin in different banks
template <int W>
constexpr int kStride = W + kQuad;  // the same for a tile of width W

struct Plan {
  int query_tile, key_tile;  // rows
  int64_t query_tiles, pieces;
  float scale;
  bool whole;
};
template <class Task>
struct Planned {
  Task task;
  Plan plan;
};

template <int W, class T>
__device__ __forceinline__ void load_tile(const T* x, int64_t stride, int rows, int64_t columns, float scale, bool whole, float* tile) {
  const int filled = (rows + kWarpRows - 1) / kWarpRows * kWarpRows;
  for (int i = static_cast<int>(threadIdx.x); i < filled * (W / kQuad); i += static_cast<int>(blockDim.x)) {
    const int row = i / (W / kQuad), c = i % (W / kQuad) * kQuad;
    float4 v{};
    if (row < rows) v = load_quad(x + row * stride + c, columns - c, whole);
    put_quad(tile + row * kStride<W> + c, scaled(v, scale));
  }
}

// s[r][n] += row r of a times row n of b, for rows 4 and 8 apart; the tile has `keys` keys.
template <int W>
__device__ __forceinline__ void multiply_rows(const float* a, const float* b, int keys, float (&s)[kRows][kKeys]) {
#pragma unroll 2
  for (int c = 0; c < W; c += kQuad) {
    float4 rows[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) rows[r] = quad_at(a + 4 * r * kStride<W> + c);
#pragma unroll
    for (int n = 0; n < kKeys; ++n) {
      if (n * kLanes >= keys) break;
      const float4 key = quad_at(b + n * kLanes * kStride<W> + c);
#pragma unroll
      for (int r = 0; r < kRows; ++r) s[r][n] = dot(rows[r], key, s[r][n]);
    }
  }
}

// out[r] += the sum over j < count of weights (row r, column j) times row j of x, in this thread's columns.
template <int W>
__device__ __forceinline__ void add_products(const float* weights, const float* x, int count, float4 (&out)[kRows][W / kWarp]) {
  for (int j = 0; j < count; j += kQuad) {
    float4 w[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) w[r] = quad_at(weights + 4 * r * kScores + j);
#pragma unroll
    for (int k = 0; k < kQuad; ++k)
#pragma unroll
      for (int m = 0; m < W / kWarp; ++m) {
        const float4 v = quad_at(x + (j + k) * kStride<W> + m * kWarp);
#pragma unroll
        for (int r = 0; r < kRows; ++r) add_scaled(out[r][m], k == 0 ? w[r].x : k == 1 ? w[r].y : k == 2 ? w[r].z : w[r].w, v);
      }
  }
}

// Bit n says whether dropout keeps key first + near + 8 n of a query; first is a multiple of 64. Four numbers of each random block belong
// to these keys.
__device__ __forceinline__ uint32_t kept_keys(const Mask& mask, uint64_t key, int64_t row, int first, int near) {
  if (mask.threshold == 0) return 0xffu;
  uint32_t bits = 0;
#pragma unroll
  for (int odd = 0; odd < 2; ++odd) {
    uint32_t words[4];
    dropout_words(key, mask.sentence[row], mask.position[row],
                  static_cast<uint32_t>(first / kStretch * kStretchThreads + near + odd * kLanes), words);
#pragma unroll
    for (int h = 0; h < 4; ++h) {
      const uint32_t word = first % kStretch == 0 ? words[h / 2] : words[2 + h / 2];
      bits |= static_cast<uint32_t>((word >> (16 * (h % 2)) & 0xffffu) >= mask.threshold) << (2 * h + odd);
    }
  }
  return bits;
}

// What a block works on.
struct Part {
  int head, piece;
  int first_row, first_key;        // of the tile's queries and of the sentence's keys
  int first_query, queries, keys;  // in the sentence: the tile's first query, the tile's queries, all keys
};
__device__ __forceinline__ Part part_of(const Attention& t, int64_t pieces, int64_t tiles, int tile_rows) {
  int64_t rest = blockIdx.x;
  Part p{};
  p.piece = static_cast<int>(rest % pieces);
  rest /= pieces;
  p.head = static_cast<int>(rest % t.heads);
  rest /= t.heads;
  p.first_query = static_cast<int>(rest % tiles) * tile_rows;
  const int64_t b = rest / tiles;
  const int left = t.query[b + 1] - t.query[b] - p.first_query;
  p.queries = left < tile_rows ? left : tile_rows;
  p.keys = t.key[b + 1] - t.key[b];
  p.first_row = t.query[b] + p.first_query;
  p.first_key = t.key[b];
  return p;
}
// How many keys a query sees.
__device__ __forceinline__ int visible(const Attention& t, int keys, int query) { return t.causal && query + 1 < keys ? query + 1 : keys; }

// What the relative position of a key `ahead` places after a query stands at, among the bins of all heads.
__device__ __forceinline__ int64_t bin_at(const Relative& r, int head, int ahead) {
  const int reach = static_cast<int>(r.reach), within = ahead < -reach ? -reach : ahead > reach ? reach : ahead;
  return head * (2 * r.reach + 1) + within + reach;
}

// Sums of one query and head by bin. A bin between the first and the last has one key, whose lane writes it. What the first and the last
// one have is summed over the eight lanes that have a query's keys, and added to what is there.
template <class T>
struct Bins {
  __device__ Bins(const Relative& r, int head, void* all, int64_t row)
      : reach(static_cast<int>(r.reach)), bins(static_cast<T*>(all) + row * r.stride + head * (2 * r.reach + 1)) {}
  __device__ void add(int ahead, float x) {
    if (ahead <= -reach)
      low += x;
    else if (ahead >= reach)
      high += x;
    else
      bins[ahead + reach] = narrow<T>(x);
  }
  __device__ void finish(bool writes) {
    low = reduce_neighbours(low, Sum{}), high = reduce_neighbours(high, Sum{});
    if (!writes) return;
    bins[0] = narrow<T>(widen(bins[0]) + low);
    bins[2 * reach] = narrow<T>(widen(bins[2 * reach]) + high);
  }
  int reach;
  T* bins;
  float low = 0, high = 0;
};
// Zeroes the bins of a part's queries, for its block.
template <class T>
__device__ void clear_bins(const Relative& r, const Part& p, void* all) {
  const int64_t bins = 2 * r.reach + 1;
  for (int64_t i = threadIdx.x; i < p.queries * bins; i += blockDim.x)
    static_cast<T*>(all)[(p.first_row + i / bins) * r.stride + p.head * bins + i % bins] = narrow<T>(0);
  __syncthreads();
}

// Zeroes the padding row of this block, among those before and behind the rows of the sentences.
template <class T>
__device__ void clear_idle(const int32_t* offsets, int64_t sentences, int64_t idle, void* x, int64_t stride, int64_t columns) {
  const int64_t row = idle < offsets[0] ? idle : idle + offsets[sentences] - offsets[0];
  for (int64_t c = threadIdx.x; c < columns; c += blockDim.x) static_cast<T*>(x)[row * stride + c] = narrow<T>(0);
}

inline Plan plan_of(const Attention& t, int W) {
  const auto tile = [](int64_t longest) {
    return static_cast<int>(std::clamp<int64_t>(blocks_for(longest, kWarpRows) * kWarpRows, kWarpRows, kTile));
  };
  Plan plan{};
  plan.query_tile = tile(t.longest_query);
  plan.key_tile = tile(t.longest_key);
  plan.query_tiles = blocks_for(t.longest_query, plan.query_tile);
  plan.pieces = blocks_for(t.width, W);
  plan.scale = 1 / std::sqrt(static_cast<float>(t.width));
  return plan;
}

// Calls f(T{}, std::integral_constant<int, W>{}) with the type and the width of tiles.
template <class F>
void by_shape(Type type, int64_t width, F f) {
  by_type(type, [&](auto e) {
    if (width <= kWarp)
      f(e, std::integral_constant<int, kWarp>{});
    else
      f(e, std::integral_constant<int, 2 * kWarp>{});
  });
}

}  // namespace starling::STARLING_CUDA::kernels
