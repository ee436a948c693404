// Products of 8-bit integers by AVX512-VNNI or AMX, with everything before and after them in one pass each. A library's product would write
// 32-bit sums that a loop has to read again, and generate code for every number of rows. Sums are exact, so both instruction sets give the
// same bits.
#pragma once

#include <cstdint>

namespace starling::vnni {

constexpr int64_t kPanel = 64;      // outputs computed together
constexpr int64_t kDepth = 4;       // products that one instruction adds up
constexpr int64_t kTile = 64;       // inputs of an AMX tile
constexpr int64_t kSpareRows = 15;  // rows that may be read behind those of q, since a tile has 16
inline int64_t padded_in(int64_t in) { return (in + kTile - 1) / kTile * kTile; }
inline int64_t padded_out(int64_t out) { return (out + kPanel - 1) / kPanel * kPanel; }

// A weight [in, out], padded with zeros.
struct Weight {
  int64_t in, out;
  const int8_t* panels;    // [padded out / 64, padded in / 4, 64, 4]
  const int32_t* offsets;  // [padded out]: -128 times the sum of an output's integers, since inputs are stored with 128 added
  const float* scales;     // [padded out]
};

// y [rows, out] (+)= relu(sums * unit[row] * scales + bias), f32 or bf16 (narrow), with row stride `columns`; bias may be null.
struct Output {
  const float* bias;
  bool relu, accumulate, narrow;
  void* y;
  int64_t columns;
};

// Quantizes rows [begin, end) of x [rows, in], f32 or bf16 (narrow), to q [rows, padded in] = 128 + round(127 x / a), with a = bound, or
// each row's largest magnitude if that is 0; unit[row] = a / 127^2, or NaN for a row with a NaN.
void quantize(const void* x, bool narrow, float bound, uint8_t* q, float* unit, int64_t in, int64_t begin, int64_t end);
// Computes panels [begin, end) of the product. `tiles`: by AMX, if there are more than a few rows.
void multiply(const uint8_t* q, const float* unit, int64_t rows, const Weight& w, const Output& out, int64_t begin, int64_t end,
              bool tiles);
void multiply_by_tiles(const uint8_t* q, const float* unit, int64_t rows, const Weight& w, const Output& out, int64_t begin, int64_t end);

}  // namespace starling::vnni
