// The same products by AMX, for more than a few rows: 32 rows by 32 outputs are summed in four tiles, from the same panels. Compiled for
// AMX.
#include "backend/cpu/vnni/lanes.h"

namespace starling::vnni {
namespace {

constexpr int kSide = 16;   // rows and sums of a tile
constexpr int kBytes = 64;  // of a tile's row, which are kBytes products

struct alignas(64) TileShapes {
  uint8_t palette = 1, start = 0, unused[14] = {};
  uint16_t bytes[16] = {kBytes, kBytes, kBytes, kBytes, kBytes, kBytes, kBytes, kBytes};
  uint8_t rows[16] = {kSide, kSide, kSide, kSide, kSide, kSide, kSide, kSide};
};

constexpr TileShapes kShapes;  // in memory before: the compiler does not know that all of it is read

// Sums of 16 rows and, with Two, of the next 16, by 32 outputs: tiles 0 and 1, 2 and 3. Rows of q lie `depth` bytes apart.
template <bool Two>
inline void sum_tiles(const uint8_t* q, const int8_t* weights, int64_t depth) {
  constexpr int64_t group = kPanel * kDepth;  // bytes of the panel that belong to kDepth inputs
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (Two) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t k = 0; k < depth; k += kBytes) {
    _tile_loadd(4, q + k, depth);
    _tile_loadd(6, weights + k / kDepth * group, group);
    _tile_loadd(7, weights + k / kDepth * group + kBytes, group);
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    if constexpr (Two) {
      _tile_loadd(5, q + kSide * depth + k, depth);
      _tile_dpbusd(2, 5, 6);
      _tile_dpbusd(3, 5, 7);
    }
  }
}

template <bool Narrow>
void multiply_panels(const uint8_t* q, const float* unit, int64_t rows, const Weight& w, const Output& out, int64_t begin, int64_t end) {
  const int64_t depth = padded_in(w.in);
  alignas(64) int32_t sums[2 * kSide][2 * kSide];
  for (int64_t p = begin; p < end; ++p)
    for (int64_t r = 0; r < rows; r += 2 * kSide)
      for (int half = 0; half < 2; ++half) {
        const int64_t column = p * kPanel + half * 2 * kSide, here = rows - r < 2 * kSide ? rows - r : 2 * kSide;
        if (column >= w.out) break;
        const int8_t* const weights = w.panels + p * kPanel * depth + half * 2 * kBytes;
        (here > kSide ? sum_tiles<true> : sum_tiles<false>)(q + r * depth, weights, depth);
        _tile_stored(0, sums[0], sizeof sums[0]);
        _tile_stored(1, sums[0] + kSide, sizeof sums[0]);
        if (here > kSide) {
          _tile_stored(2, sums[kSide], sizeof sums[0]);
          _tile_stored(3, sums[kSide] + kSide, sizeof sums[0]);
        }
        for (int i = 0; i < 2; ++i) {
          const Columns c(w, out, column + i * kSide);
          const __m512i offset = _mm512_loadu_si512(w.offsets + c.first);
          for (int64_t n = 0; n < here; ++n)
            finish<Narrow>(_mm512_add_epi32(_mm512_load_si512(&sums[n][i * kSide]), offset), unit[r + n], c, out, r + n);
        }
      }
}

}  // namespace

void multiply_by_tiles(const uint8_t* q, const float* unit, int64_t rows, const Weight& w, const Output& out, int64_t begin, int64_t end) {
  _tile_loadconfig(&kShapes);
  (out.narrow ? multiply_panels<true> : multiply_panels<false>)(q, unit, rows, w, out, begin, end);
  _tile_release();
}

}  // namespace starling::vnni
