// Four neighbouring elements at a time, and what attention kernels share about them: eight lanes are neighbours along columns or keys.
#pragma once

#include <initializer_list>

#include "backend/cuda/kernels/device.cuh"

namespace starling::STARLING_CUDA::kernels {

constexpr int kQuad = 4;
constexpr int kLanes = 8;  // neighbours; four such groups are a warp

__device__ __forceinline__ float4 quad_at(const float* x) { return *reinterpret_cast<const float4*>(x); }
__device__ __forceinline__ float4 quad_at(const Bf16* x) {
  const uint2 two = *reinterpret_cast<const uint2*>(x);
  return {__uint_as_float(two.x << 16), __uint_as_float(two.x & 0xffff0000u), __uint_as_float(two.y << 16),
          __uint_as_float(two.y & 0xffff0000u)};
}
__device__ __forceinline__ void put_quad(float* x, float4 v) { *reinterpret_cast<float4*>(x) = v; }
__device__ __forceinline__ void put_quad(Bf16* x, float4 v) { *reinterpret_cast<uint2*>(x) = {pair_of(v.x, v.y), pair_of(v.z, v.w)}; }
// Elements x[0 ... 3], of which the first `left` exist; the others read as zero and are not written. whole: see whole_quads.
template <class T>
__device__ __forceinline__ float4 load_quad(const T* x, int64_t left, bool whole) {
  if (whole && left >= kQuad) return quad_at(x);
  return {left > 0 ? widen(x[0]) : 0.0f, left > 1 ? widen(x[1]) : 0.0f, left > 2 ? widen(x[2]) : 0.0f, left > 3 ? widen(x[3]) : 0.0f};
}
template <class T>
__device__ __forceinline__ void store_quad(T* x, float4 v, int64_t left, bool whole) {
  if (whole && left >= kQuad) return put_quad(x, v);
  if (left > 0) x[0] = narrow<T>(v.x);
  if (left > 1) x[1] = narrow<T>(v.y);
  if (left > 2) x[2] = narrow<T>(v.z);
  if (left > 3) x[3] = narrow<T>(v.w);
}
// Whether all quads of matrices with such strides, widths and addresses are whole and aligned.
template <class T>
bool whole_quads(std::initializer_list<int64_t> numbers, std::initializer_list<const void*> addresses) {
  bool whole = true;
  for (const int64_t n : numbers) whole = whole && n % kQuad == 0;
  for (const void* p : addresses) whole = whole && reinterpret_cast<uintptr_t>(p) % (kQuad * sizeof(T)) == 0;
  return whole;
}

__device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
  return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
}
__device__ __forceinline__ void add_scaled(float4& sum, float factor, float4 x) {
  sum.x = fmaf(factor, x.x, sum.x);
  sum.y = fmaf(factor, x.y, sum.y);
  sum.z = fmaf(factor, x.z, sum.z);
  sum.w = fmaf(factor, x.w, sum.w);
}
__device__ __forceinline__ float4 scaled(float4 x, float factor) { return {factor * x.x, factor * x.y, factor * x.z, factor * x.w}; }

// Reduce over neighbours, and over the lanes that have the same position among their neighbours.
template <class Op>
__device__ __forceinline__ float reduce_neighbours(float x, Op op) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) x = op(x, __shfl_xor_sync(kAllLanes, x, step));
  return x;
}
template <class Op>
__device__ __forceinline__ float reduce_groups(float x, Op op) {
#pragma unroll
  for (int step = kWarp / 2; step >= kLanes; step /= 2) x = op(x, __shfl_xor_sync(kAllLanes, x, step));
  return x;
}

}  // namespace starling::STARLING_CUDA::kernels
