// The arithmetic of the loops: vectors with tails, sums and maxima of lanes, exponentials. Sums have a fixed order.
#pragma once

#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels/vectors.h"

namespace starling::kernels::STARLING_ISA {
namespace {

// A whole vector or the first n lanes: blocks(n, f) calls f(column, Full{} or Part{rest}) so that one body serves both.
struct Full {};
struct Part {
  int64_t n;
};
template <class T>
inline vf load(const T* p, Full) {
  return load(p);
}
template <class T>
inline vf load(const T* p, Part w) {
  return load(p, w.n);
}
template <class T>
inline void store(T* p, vf x, Full) {
  store(p, x);
}
template <class T>
inline void store(T* p, vf x, Part w) {
  store(p, x, w.n);
}
template <class F>
inline void blocks(int64_t begin, int64_t end, F f) {
  int64_t c = begin;
  for (; c + L <= end; c += L) f(c, Full{});
  if (c < end) f(c, Part{end - c});
}

typedef float f8 __attribute__((vector_size(32)));
typedef float f4 __attribute__((vector_size(16)));

// Combines halves until one lane is left, in registers.
template <class Op>
inline float folded(f4 x, Op op) {
  const f4 pair = op(x, __builtin_shufflevector(x, x, 2, 3, 2, 3));
  return op(pair, __builtin_shufflevector(pair, pair, 1, 1, 1, 1))[0];
}
template <class Op>
inline float folded(f8 x, Op op) {
  return folded(op(__builtin_shufflevector(x, x, 0, 1, 2, 3), __builtin_shufflevector(x, x, 4, 5, 6, 7)), op);
}
#if defined(__AVX512F__)
template <class Op>
inline float folded(vf x, Op op) {
  return folded(op(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7), __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15)), op);
}
#endif
inline float sum(vf x) {
  return folded(x, [](auto a, auto b) { return a + b; });
}
inline float maximum(vf x) {
  return folded(x, [](auto a, auto b) { return a > b ? a : b; });
}
inline int64_t count(vi x) {
  int64_t n = 0;
  for (int i = 0; i < L; ++i) n += x[i];
  return n;
}
inline vf max(vf a, vf b) { return a > b ? a : b; }

// The first n lanes of x, `other` in those behind.
inline vf first_of(vf x, int64_t n, float other) {
  vi lane;
  for (int i = 0; i < L; ++i) lane[i] = i;
  return lane < static_cast<int32_t>(n) ? x : splat(other);
}

// x = n ln 2 + r with |r| <= ln 2 / 2 (Cody-Waite); `power` is n at the position of a float's exponent.
inline vf reduce(vf x, vi& power) {
  const vf shifted = x * 1.44269504f + 12582912.0f;
  const vf n = shifted - 12582912.0f;
  power = ((vi)shifted - 0x4B400000) << 23;
  return (x - n * 0.693359375f) + n * 2.12194440e-4f;
}
// (e^r - 1) / r for |r| <= ln 2 / 2, relative error 3e-8: its Chebyshev series to degree 5.
inline vf growth(vf r) {
  vf p = r * 1.39411632e-3f + 8.36918689e-3f;
  p = p * r + 4.16663513e-2f;
  p = p * r + 0.166665047f;
  p = p * r + 0.5f;
  return p * r + 1.0f;
}

// e^x, relative error below 2e-7; inputs below -87 give about 1e-38.
inline vf exponential(vf x) {
  x = x < splat(-87.3f) ? splat(-87.3f) : x;
  x = x > splat(88.3f) ? splat(88.3f) : x;
  vi power;
  const vf r = reduce(x, power);
  return (vf)((vi)(growth(r) * r + 1.0f) + power);
}

// Absolute error below 2e-7.
inline vf sigmoid(vf x) { return 1.0f / (1.0f + exponential(-x)); }

// u / (u + 2) with u = e^2x - 1, which keeps its digits near zero; relative error below 4e-7.
inline vf hyperbolic_tangent(vf x) {
  x += x;
  x = x < splat(-20) ? splat(-20) : x;
  x = x > splat(20) ? splat(20) : x;
  vi power;
  const vf r = reduce(x, power), scale = (vf)((vi)splat(1) + power);
  const vf u = scale * (growth(r) * r) + (scale - 1.0f);
  return u / (u + 2.0f);
}

}  // namespace
}  // namespace starling::kernels::STARLING_ISA
