// A warp's products of bf16 tiles on tensor cores (PTX's mma.sync.m16n8k16), and how its lanes load tiles from shared memory (ldmatrix). Of
// a tile c [16, 8], lane l has the rows l / 4 (c[0], c[1]) and l / 4 + 8 (c[2], c[3]) in the columns 2 (l % 4) and 2 (l % 4) + 1.
#pragma once

#include "backend/cuda/kernels/device.cuh"

namespace starling::STARLING_CUDA::kernels {

// c [16, 8] += a [16, 16] b [16, 8]; a and b as load_tiles loads them.
__device__ __forceinline__ void multiply_tiles(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#ifdef STARLING_CUDA_EMULATED
  mma_m16n8k16_bf16(c, a, b0, b1);
#else
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// Loads four tiles [8, 8]: lane 8 i + r gives the address of row r of tile i. Of each tile, lane l gets the two elements from column 2 (l %
// 4) on in row l / 4; if `turned`, of the tile's transpose.
template <bool turned>
__device__ __forceinline__ void load_tiles(uint32_t (&x)[4], const uint16_t* row) {
#ifdef STARLING_CUDA_EMULATED
  ldmatrix_x4<turned>(x, row);
#else
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (turned)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address));
#endif
}

// The left side of products: a [16, 16] at `x`, whose rows are `stride` elements apart.
__device__ __forceinline__ void load_left(uint32_t (&a)[4], const uint16_t* x, int stride) {
  load_tiles<false>(a, x + lane() % 16 * stride + lane() / 16 * 8);
}
// The same for the transpose of what lies there.
__device__ __forceinline__ void load_left_turned(uint32_t (&a)[4], const uint16_t* x, int stride) {
  load_tiles<true>(a, x + (lane() % 8 + lane() / 16 * 8) * stride + lane() / 8 % 2 * 8);
}
// The right sides of two products: b [16, 8] (b[0], b[1]) and the eight columns beside it (b[2], b[3]), from x [16, 16] at `x`.
__device__ __forceinline__ void load_right(uint32_t (&b)[4], const uint16_t* x, int stride) {
  load_tiles<true>(b, x + lane() % 16 * stride + lane() / 16 * 8);
}
// The same for the transpose of what lies there: columns of b are rows of x.
__device__ __forceinline__ void load_right_turned(uint32_t (&b)[4], const uint16_t* x, int stride) {
  load_tiles<false>(b, x + (lane() % 8 + lane() / 16 * 8) * stride + lane() / 8 % 2 * 8);
}

}  // namespace starling::STARLING_CUDA::kernels
