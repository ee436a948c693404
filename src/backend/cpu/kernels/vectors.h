// Vectors of the instruction set that a file is compiled for (STARLING_ISA): L lanes of 32 bits. For the .cpp files of the kernels only.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>
#include <string_view>

#include "tensor/tensor.h"

#define STARLING_QUOTE(x) #x
#define STARLING_STRING(x) STARLING_QUOTE(x)

namespace starling::kernels::STARLING_ISA {
namespace {

// Guards against a build that loses the flags of the instruction set: the loops would be correct but slow.
constexpr std::string_view kIsa = STARLING_STRING(STARLING_ISA);
#if defined(__AVX512BF16__)
static_assert(kIsa == "v4_bf16");
constexpr int L = 16;
#elif defined(__AVX512F__)
static_assert(kIsa == "v4");
constexpr int L = 16;
#elif defined(__AVX2__)
static_assert(kIsa == "v3");
constexpr int L = 8;
#elif defined(__x86_64__)
static_assert(kIsa == "v2");
constexpr int L = 4;
#else
static_assert(kIsa == "neon");
constexpr int L = 4;
#endif

typedef float vf __attribute__((vector_size(4 * L)));
typedef int32_t vi __attribute__((vector_size(4 * L)));
typedef uint32_t vu __attribute__((vector_size(4 * L)));
typedef uint16_t vh __attribute__((vector_size(2 * L)));
typedef int16_t vs __attribute__((vector_size(2 * L)));

inline vf splat(float x) { return x - vf{}; }
inline vu splat_u(uint32_t x) { return x - vu{}; }

inline vf load(const float* p) {
  vf x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
inline vf load(const bf16* p) {
  vh h;
  std::memcpy(&h, p, sizeof h);
#if defined(__AVX512F__)  // the compiler would convert halves
  return (vf)(vu)_mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)h), 16);
#else
  return (vf)(__builtin_convertvector(h, vu) << 16);
#endif
}
inline void store(float* p, vf x) { std::memcpy(p, &x, sizeof x); }
#if defined(__AVX512BF16__)
inline void store(bf16* p, vf x) {  // numbers below 1e-38 become 0
  const __m256bh h = _mm512_cvtneps_pbh((__m512)x);
  std::memcpy(p, &h, sizeof h);
}
#else
inline void store(bf16* p, vf x) {
  const vu u = (vu)x;
  const vu rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
#if defined(__AVX512F__)
  const vh h = (vh)_mm512_cvtepi32_epi16((__m512i)rounded);
#else
  const vh h = __builtin_convertvector(rounded, vh);
#endif
  std::memcpy(p, &h, sizeof h);
}
#endif
inline vf load(const int16_t* p) {
  vs h;
  std::memcpy(&h, p, sizeof h);
  return __builtin_convertvector(h, vf);
}
// To the nearest integer, ties to even; |x| <= 32767.
inline void store(int16_t* p, vf x) {
  const vs h = __builtin_convertvector((vi)(x + 12582912.0f) - 0x4B400000, vs);
  std::memcpy(p, &h, sizeof h);
}
template <class T>
inline vf load(const T* p, int64_t n) {
  T part[L] = {};
  std::memcpy(part, p, n * sizeof(T));
  return load(part);
}
template <class T>
inline void store(T* p, vf x, int64_t n) {
  T part[L];
  store(part, x);
  std::memcpy(p, part, n * sizeof(T));
}

// Asks for a line of the cache, for its second level. GCC drops calls of functions that do nothing else: hence the empty statement.
inline void prefetch(const void* p) {
  __builtin_prefetch(p, 0, 2);
  asm volatile("");
}

inline vi load(const int32_t* p) {
  vi x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

// Magnitudes compare as integers in the same order as the numbers do.
inline vi magnitude_bits(vf x) { return (vi)x & 0x7fffffff; }

// The lanes of a comparison, 0 or -1, as one bit each, lane 0 the lowest, where there is no instruction for it.
inline uint32_t bits_of(vi lanes) {
  uint32_t bits = 0;
  for (int i = 0; i < L; ++i) bits |= (static_cast<uint32_t>(lanes[i]) & 1u) << i;
  return bits;
}

// Which lanes of x are at least `least`: one bit each, lane 0 the lowest.
inline uint32_t at_least(vi x, int32_t least) {
#if defined(__AVX512F__)
  return _mm512_cmpge_epi32_mask((__m512i)x, _mm512_set1_epi32(least));
#elif defined(__AVX2__)
  return static_cast<uint32_t>(_mm256_movemask_ps((__m256)(x >= least)));
#elif defined(__x86_64__)
  return static_cast<uint32_t>(_mm_movemask_ps((__m128)(x >= least)));
#else
  return bits_of(x >= least);
#endif
}

// Which lanes of x are greater than y, likewise; NaN lanes never are.
inline uint32_t greater(vf x, float y) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(y), _CMP_GT_OQ);
#elif defined(__AVX2__)
  return static_cast<uint32_t>(_mm256_movemask_ps((__m256)(x > y)));
#elif defined(__x86_64__)
  return static_cast<uint32_t>(_mm_movemask_ps((__m128)(x > y)));
#else
  return bits_of(x > y);
#endif
}

}  // namespace
}  // namespace starling::kernels::STARLING_ISA
