// Eight neighbouring elements at a time: one 16-byte access for bf16, two for f32. Kernels that stream through memory reach its full rate
// only with accesses this wide.
#pragma once

#include <initializer_list>

#include "backend/cuda/kernels/device.cuh"

namespace starling::STARLING_CUDA::kernels {

constexpr int kWide = 8;

struct Eight {
  float at[kWide];
};
__device__ __forceinline__ Eight load_eight(const float* x) {
  const float4 a = reinterpret_cast<const float4*>(x)[0], b = reinterpret_cast<const float4*>(x)[1];
  return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}
__device__ __forceinline__ Eight load_eight(const Bf16* x) {
  const uint4 w = *reinterpret_cast<const uint4*>(x);
  const auto low = [](uint32_t two) { return __uint_as_float(two << 16); };
  const auto high = [](uint32_t two) { return __uint_as_float(two & 0xffff0000u); };
  return {{low(w.x), high(w.x), low(w.y), high(w.y), low(w.z), high(w.z), low(w.w), high(w.w)}};
}
__device__ __forceinline__ void store_eight(float* x, const Eight& v) {
  reinterpret_cast<float4*>(x)[0] = {v.at[0], v.at[1], v.at[2], v.at[3]};
  reinterpret_cast<float4*>(x)[1] = {v.at[4], v.at[5], v.at[6], v.at[7]};
}
__device__ __forceinline__ void store_eight(Bf16* x, const Eight& v) {
  const auto two = [&](int i) { return pair_of(v.at[i], v.at[i + 1]); };
  *reinterpret_cast<uint4*>(x) = {two(0), two(2), two(4), two(6)};
}

// Writes v, and returns what stands there then.
__device__ __forceinline__ Eight stored_eight(float* x, const Eight& v) {
  store_eight(x, v);
  return v;
}
__device__ __forceinline__ Eight stored_eight(Bf16* x, const Eight& v) {
  const uint32_t pairs[] = {pair_of(v.at[0], v.at[1]), pair_of(v.at[2], v.at[3]), pair_of(v.at[4], v.at[5]), pair_of(v.at[6], v.at[7])};
  *reinterpret_cast<uint4*>(x) = {pairs[0], pairs[1], pairs[2], pairs[3]};
  Eight y;
#pragma unroll
  for (int i = 0; i < kWide; ++i) y.at[i] = __uint_as_float(i % 2 == 0 ? pairs[i / 2] << 16 : pairs[i / 2] & 0xffff0000u);
  return y;
}

// Whether matrices with these widths, strides and addresses consist of whole, aligned eights. Null addresses count as aligned.
inline bool whole_eights(std::initializer_list<int64_t> numbers, std::initializer_list<const void*> addresses) {
  bool whole = true;
  for (const int64_t n : numbers) whole = whole && n % kWide == 0;
  for (const void* p : addresses) whole = whole && reinterpret_cast<uintptr_t>(p) % 16 == 0;
  return whole;
}

}  // namespace starling::STARLING_CUDA::kernels
