#include "backend/cpu/kernels/small_products.h"

namespace starling::kernels::STARLING_ISA {
namespace {

constexpr int kMaxNV = L == 16 ? 4 : 2;

// C [MR, NV * L] (+)= A [MR, k] B [k, NV * L]; A element (i, j) is at a[i * rs + j * cs].
template <int MR, int NV>
inline void tile(int64_t k, const float* a, int64_t rs, int64_t cs, const float* b, int64_t ldb, float* c, int64_t ldc) {
  vf acc[MR][NV] = {};
  for (int64_t j = 0; j < k; ++j) {
    vf row[NV];
    for (int v = 0; v < NV; ++v) row[v] = load(b + j * ldb + v * L);
    for (int i = 0; i < MR; ++i) {
      const float x = a[i * rs + j * cs];
      for (int v = 0; v < NV; ++v) acc[i][v] += x * row[v];
    }
  }
  for (int i = 0; i < MR; ++i)
    for (int v = 0; v < NV; ++v) store(c + i * ldc + v * L, acc[i][v]);
}

template <int NV>
void column_panel(int64_t m, int64_t k, const float* a, int64_t rs, int64_t cs, const float* b, int64_t ldb, float* c, int64_t ldc) {
  int64_t i = 0;
  for (; i + kTileRows <= m; i += kTileRows) tile<kTileRows, NV>(k, a + i * rs, rs, cs, b, ldb, c + i * ldc, ldc);
  a += i * rs;
  c += i * ldc;
  switch (m - i) {
    case 5:
      return tile<5, NV>(k, a, rs, cs, b, ldb, c, ldc);
    case 4:
      return tile<4, NV>(k, a, rs, cs, b, ldb, c, ldc);
    case 3:
      return tile<3, NV>(k, a, rs, cs, b, ldb, c, ldc);
    case 2:
      return tile<2, NV>(k, a, rs, cs, b, ldb, c, ldc);
    case 1:
      return tile<1, NV>(k, a, rs, cs, b, ldb, c, ldc);
    default:
      return;
  }
}

}  // namespace

void product(int64_t m, int64_t n, int64_t k, const float* a, int64_t rs, int64_t cs, const float* b, int64_t ldb, float* c, int64_t ldc) {
  int64_t j = 0;
  for (; j + kMaxNV * L <= n; j += kMaxNV * L) column_panel<kMaxNV>(m, k, a, rs, cs, b + j, ldb, c + j, ldc);
  if constexpr (kMaxNV > 2) {
    if (n - j == 3 * L) return column_panel<3>(m, k, a, rs, cs, b + j, ldb, c + j, ldc);
    if (n - j == 2 * L) return column_panel<2>(m, k, a, rs, cs, b + j, ldb, c + j, ldc);
  }
  if (n - j == L) column_panel<1>(m, k, a, rs, cs, b + j, ldb, c + j, ldc);
}

}  // namespace starling::kernels::STARLING_ISA
