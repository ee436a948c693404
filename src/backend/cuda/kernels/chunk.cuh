// What kernels of compression share: sums over a block's threads in order, the choice of a digit of the k-th largest magnitude, and the
// values that codes can hold (as in backend/compression.h).
#pragma once

#include "backend/cuda/kernels/compression.h"
#include "backend/cuda/kernels/device.cuh"

namespace starling::STARLING_CUDA::kernels {

constexpr int kChunk = 4096, kChunkThreads = 256, kChunkWarps = kChunkThreads / kWarp;
constexpr uint32_t kNotFinite = 0x7f800000u;

__device__ __forceinline__ uint32_t magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }
__device__ __forceinline__ bool is_sparse(Coding c) { return c <= Coding::two_bit; }

__device__ __forceinline__ int64_t index_bytes(int64_t count) { return (3 * count + 1) / 2; }
// The bytes of a chunk with `count` entries or elements.
__device__ __forceinline__ int64_t chunk_bytes(Coding coding, int64_t count) {
  switch (coding) {
    case Coding::full:
      return index_bytes(count) + count * 4;
    case Coding::bf16:
      return index_bytes(count) + count * 2;
    case Coding::two_bit:
      return 4 + index_bytes(count) + (count + 3) / 4;
    case Coding::ternary:
      return 4 + (count + 4) / 5;
    default:
      return 2 + (count + 1) / 2;
  }
}
__device__ __forceinline__ int get_u16(const uint8_t* from) { return from[0] | from[1] << 8; }
__device__ __forceinline__ void put_u16(uint8_t* to, int x) { to[0] = static_cast<uint8_t>(x), to[1] = static_cast<uint8_t>(x >> 8); }

// Returns the sum of x over the threads before this one, and in `total` over all. scratch: one T per warp.
template <class T>
__device__ __forceinline__ T sum_before(T x, T* scratch, T& total) {
  T upto = x;
#pragma unroll
  for (int step = 1; step < kWarp; step *= 2) {
    const T other = __shfl_up_sync(kAllLanes, upto, step);
    if (lane() >= step) upto += other;
  }
  if (lane() == kWarp - 1) scratch[warp()] = upto;
  __syncthreads();
  T before = 0;
  total = 0;
  for (int w = 0; w < kChunkWarps; ++w) {
    if (w < warp()) before += scratch[w];
    total += scratch[w];
  }
  __syncthreads();
  return before + upto - x;
}

// The digits of magnitudes are their bits from 20, 10 and 0 on. pick_digit finds, from their histogram, the next digit of the k-th largest
// of those whose upper digits are those of `found`. All threads call it; one of them calls put(digit, k among those with the digit, their
// number).
__device__ __forceinline__ bool matches(uint32_t magnitude, uint32_t found, int shift) {
  return shift == 20 || magnitude >> (shift + 10) == found >> (shift + 10);
}
__device__ __forceinline__ uint32_t digit_of(uint32_t magnitude, int shift) {
  return shift == 20 ? magnitude >> 20 : magnitude >> shift & 1023;
}
template <class F>
__device__ __forceinline__ void pick_digit(const uint32_t* histogram, int64_t k, int64_t* scratch, F put) {
  constexpr int each = kBins / kChunkThreads;
  const int top = kBins - 1 - each * static_cast<int>(threadIdx.x);
  int64_t sum = 0, total = 0;
  for (int i = 0; i < each; ++i) sum += histogram[top - i];
  int64_t before = sum_before(sum, scratch, total);
  if (before >= k || before + sum < k) return;
  for (int i = 0; i < each; ++i) {
    const int64_t here = histogram[top - i];
    if (before + here >= k) return put(static_cast<uint32_t>(top - i), k - before, here);
    before += here;
  }
}

__device__ __forceinline__ bool subtracts_exactly(float x, float s) {
  const float rest = __fsub_rn(x, s);
  return fabsf(x) >= fabsf(s) / 2 && __fsub_rn(x, rest) == s;
}
__device__ __forceinline__ float sendable_bf16(float x) {
  uint32_t bits = bf16_bits(x);
  if ((bits & 0x7f80) == 0x7f80) bits = (bits & 0x8000) | 0x7f7f;
  const float s = __uint_as_float(bits << 16);
  return subtracts_exactly(x, s) ? s : 0.0f;
}
__device__ __forceinline__ float truncated_bf16(double x) {
  return __uint_as_float(__float_as_uint(static_cast<float>(x < FLT_MAX ? x : FLT_MAX)) & 0xffff0000u);
}

// Two levels for magnitudes, as TwoLevels; and the value that x is sent as: false if neither can be subtracted exactly.
struct Levels {
  float low, high;
  double split;
};
__device__ __forceinline__ bool two_bit_value(const Levels& levels, float x, int& bits, float& sent) {
  for (int high = 1; high >= 0; --high) {
    if (high && fabs(static_cast<double>(x)) <= levels.split) continue;
    const float level = high ? levels.high : levels.low;
    sent = x < 0 ? -level : level;
    bits = 2 * high + (x < 0 ? 1 : 0);
    if (level != 0 && subtracts_exactly(x, sent)) return true;
  }
  return false;
}

// Updates the velocity, if there is one; returns decay * residual + what is added to it.
__device__ __forceinline__ float add_up(const Compress& t, int64_t i) {
  float x = t.x[i];
  if (t.velocity) t.velocity[i] = x = __fmaf_rn(t.momentum, t.velocity[i], x);
  return __fmaf_rn(t.decay, t.residual[i], x);
}

}  // namespace starling::STARLING_CUDA::kernels
