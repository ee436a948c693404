// What both directions of attention on tensor cores share, for activations in bf16 and heads of at most 64 columns. A block has tiles of up
// to 64 queries and 64 keys in shared memory, in bf16; a warp has 16 of the queries. Of its scores [16, 64], a thread has the rows group
// and group + 8 and, of every eight keys, the neighbours 2 near and 2 near + 1 (tensor_cores.cuh).
#pragma once

#include "backend/cuda/kernels/attention.cuh"
#include "backend/cuda/kernels/tensor_cores.cuh"
#include "backend/cuda/kernels/wide.cuh"

namespace starling::STARLING_CUDA::kernels {

constexpr int kEights = kTile / 8;  // of keys in a tile
template <int W>
constexpr int kTileStride = W + 8;  // row stride in elements, so that eight rows begin in different banks

struct OwnRows {
  int near = lane() % 4, group = lane() / 4, first = warp() * kWarpRows;
  __device__ __forceinline__ int row(int r) const { return first + group + 8 * r; }
};

// Copies rows of x into the tile, and pads them with zeros to a multiple of 16 rows and to W columns. columns: of a row, a multiple of 8.
template <int W>
__device__ __forceinline__ void load_bf16_tile(const Bf16* x, int64_t stride, int rows, int64_t columns, uint16_t* tile) {
  const int filled = (rows + kWarpRows - 1) / kWarpRows * kWarpRows;
  for (int i = static_cast<int>(threadIdx.x); i < filled * (W / 8); i += static_cast<int>(blockDim.x)) {
    const int row = i / (W / 8), c = i % (W / 8) * 8;
    uint4 eight{};
    if (row < rows && c < columns) eight = *reinterpret_cast<const uint4*>(x + row * stride + c);
    *reinterpret_cast<uint4*>(tile + row * kTileStride<W> + c) = eight;
  }
}

// s[n] = the products of the warp's 16 rows at `a` with rows 8 n to 8 n + 7 of `b`, of which `count` exist.
template <int W, int N>
__device__ __forceinline__ void products_of_rows(const uint16_t* a, const uint16_t* b, int count, float (&s)[N][4]) {
  uint32_t left[W / 16][4];
#pragma unroll
  for (int c = 0; c < W / 16; ++c) load_left(left[c], a + 16 * c, kTileStride<W>);
#pragma unroll
  for (int n = 0; n < N; n += 2) {
    if (8 * n >= count) break;
#pragma unroll
    for (int c = 0; c < W / 16; ++c) {
      uint32_t right[4];
      load_right_turned(right, b + 8 * n * kTileStride<W> + 16 * c, kTileStride<W>);
      multiply_tiles(s[n], left[c], right[0], right[1]);
      multiply_tiles(s[n + 1], left[c], right[2], right[3]);
    }
  }
}

// out [16, W] += weights [16, count] times the rows of x; the warp holds the weights as it holds scores.
template <int W, int N>
__device__ __forceinline__ void add_weighted_rows(const float (&weights)[N][4], const uint16_t* x, int count, float (&out)[W / 8][4]) {
#pragma unroll
  for (int n = 0; n < N; n += 2) {
    if (8 * n >= count) break;
    const uint32_t left[4] = {pair_of(weights[n][0], weights[n][1]), pair_of(weights[n][2], weights[n][3]),
                              pair_of(weights[n + 1][0], weights[n + 1][1]), pair_of(weights[n + 1][2], weights[n + 1][3])};
#pragma unroll
    for (int c = 0; c < W / 16; ++c) {
      uint32_t right[4];
      load_right(right, x + 8 * n * kTileStride<W> + 16 * c, kTileStride<W>);
      multiply_tiles(out[2 * c], left, right[0], right[1]);
      multiply_tiles(out[2 * c + 1], left, right[2], right[3]);
    }
  }
}

// Bit 2 n + e says whether dropout keeps key first + 8 n + 2 near + e of a query; first is a multiple of 64. Each random block has numbers
// for four of these keys.
__device__ __forceinline__ uint32_t kept_pairs(const Mask& mask, uint64_t key, int64_t row, int first, int near) {
  if (mask.threshold == 0) return 0xffffu;
  uint32_t bits = 0;
#pragma unroll
  for (int odd = 0; odd < 2; ++odd)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      uint32_t words[4];
      dropout_words(key, mask.sentence[row], mask.position[row],
                    static_cast<uint32_t>(first / kStretch * kStretchThreads + odd * 8 + 2 * near + e), words);
#pragma unroll
      for (int h = 0; h < 4; ++h) {
        const uint32_t word = first % kStretch == 0 ? words[h / 2] : words[2 + h / 2];
        bits |= static_cast<uint32_t>((word >> (16 * (h % 2)) & 0xffffu) >= mask.threshold) << (2 * (2 * h + odd) + e);
      }
    }
  return bits;
}

// Reduces x over the four lanes that share a row.
template <class Op>
__device__ __forceinline__ float reduce_row(float x, Op op) {
  x = op(x, __shfl_xor_sync(kAllLanes, x, 1));
  return op(x, __shfl_xor_sync(kAllLanes, x, 2));
}

// Whether attention can use tensor cores: in bf16, with rows of whole, aligned eights and heads that fit a tile.
inline bool fits_tiles(Type type, const Attention& t, std::initializer_list<int64_t> strides,
                       std::initializer_list<const void*> addresses) {
  return type == Type::bf16 && t.relative.reach == 0 && t.width <= kTile &&
         whole_eights({t.width, t.q_stride, t.kv_stride}, {t.q, t.k, t.v}) && whole_eights(strides, addresses);
}

void attention_on_tiles(const Attention&, cudaStream_t);
void attention_backward_on_tiles(const AttentionBackward&, cudaStream_t);

}  // namespace starling::STARLING_CUDA::kernels
