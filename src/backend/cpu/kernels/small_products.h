// Products of small f32 matrices that stay in cache, for attention, and copying rows into and out of their buffers.
#pragma once

#include "backend/cpu/kernels/arithmetic.h"

namespace starling::kernels::STARLING_ISA {

// C [m, n] = A [m, k] B [k, n]; A element (i, j) is at a[i * rs + j * cs]; n is a multiple of L (buffers are padded).
void product(int64_t m, int64_t n, int64_t k, const float* a, int64_t rs, int64_t cs, const float* b, int64_t ldb, float* c, int64_t ldc);

namespace {

constexpr int kTileRows = 6;  // of products: with them the sums, a row of the other side and an input are all registers but one or three

inline int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
inline int64_t padded(int64_t n) { return (n + L - 1) / L * L; }

// L x L transposition by log2(L) rounds of interleaving row i with row i + L/2.
inline void transpose_block(vf* r) {
  vi low, high;
  for (int i = 0; i < L; ++i) {
    low[i] = i / 2 + (i % 2) * L;
    high[i] = L / 2 + i / 2 + (i % 2) * L;
  }
  for (int round = 1; round < L; round *= 2) {
    vf t[L];
    for (int i = 0; i < L / 2; ++i) {
      t[2 * i] = __builtin_shuffle(r[i], r[i + L / 2], low);
      t[2 * i + 1] = __builtin_shuffle(r[i], r[i + L / 2], high);
    }
    for (int i = 0; i < L; ++i) r[i] = t[i];
  }
}

// out [rows, width] f32 with row stride `ld` = padded(width), times scale; padding columns are zero.
template <class T>
void widen_rows(const void* in, int64_t stride, int64_t rows, int64_t width, float scale, float* out, int64_t ld) {
  for (int64_t r = 0; r < rows; ++r)
    blocks(0, width, [&](int64_t c, auto w) { store(out + r * ld + c, load(static_cast<const T*>(in) + r * stride + c, w) * scale); });
}

// out [width, padded(rows)] = in^T; padding columns are zero.
template <class T>
void widen_transposed(const void* in, int64_t stride, int64_t rows, int64_t width, float* out, int64_t ld) {
  for (int64_t r = 0; r < rows; r += L)
    blocks(0, width, [&](int64_t c, auto w) {
      vf block[L];
      for (int i = 0; i < L; ++i) block[i] = r + i < rows ? load(static_cast<const T*>(in) + (r + i) * stride + c, w) : vf{};
      transpose_block(block);
      const int64_t count = std::min<int64_t>(L, width - c);
      for (int i = 0; i < count; ++i) store(out + (c + i) * ld + r, block[i]);
    });
}

template <class T>
void narrow_rows(const float* in, int64_t ld, int64_t rows, int64_t width, float scale, void* out, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r)
    blocks(0, width, [&](int64_t c, auto w) { store(static_cast<T*>(out) + r * stride + c, load(in + r * ld + c) * scale, w); });
}

// In place: row[0, limit) becomes its softmax, row[limit, ld) zero, ld a multiple of L. Returns the log of the denominator.
inline float softmax_row(float* row, int64_t limit, int64_t ld) {
  vf top = splat(-1e30f), total{};
  for (int64_t j = 0; j < limit; j += L) top = max(top, first_of(load(row + j), limit - j, -1e30f));
  const float m = maximum(top);
  for (int64_t j = 0; j < limit; j += L) {
    const vf e = first_of(exponential(load(row + j) - m), limit - j, 0);
    store(row + j, e);
    total += e;
  }
  const float denominator = sum(total), inverse = 1.0f / denominator;
  int64_t j = 0;
  for (; j < limit; j += L) store(row + j, load(row + j) * inverse);
  for (; j < ld; j += L) store(row + j, vf{});
  return m + std::log(denominator);
}

}  // namespace
}  // namespace starling::kernels::STARLING_ISA
