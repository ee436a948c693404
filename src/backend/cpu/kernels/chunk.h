// A chunk on its way into a code, and the choice of the elements that are sent of it.
#pragma once

#include <bit>

#include "backend/cpu/kernels/compression.h"
#include "backend/cpu/kernels/vectors.h"

namespace starling::kernels::STARLING_ISA {

inline int32_t magnitude(float x) { return std::bit_cast<int32_t>(x) & 0x7fffffff; }
inline float positive(int32_t bits) { return std::bit_cast<float>(bits); }

// What is to be sent of one chunk, and room to choose it.
struct Chunk {
  float* a;  // residual and gradient together, in the residual's place
  int64_t n;
  const float *next_x, *next_residual;  // of the chunk that follows, or this one

  int32_t top[1024];  // the largest magnitude of each group
  int64_t entries = 0;
  int32_t index[kChunk], magnitudes[kChunk + L];  // of the entries, ascending by index
  float gradient[kChunk];                         // at the entries
  float sent[kChunk];                             // of the entries, or of all elements
};

// The elements of at least the threshold (> 0) become the entries.
void choose(Chunk& c, int32_t threshold);
// Of the entries those above the threshold stay, and the first `ties` of those at it.
void truncate(Chunk& c, int32_t threshold, int64_t ties);
// The k largest that are not zero become the entries.
void choose_largest(Chunk& c, int64_t k);

// CompressionTable::decompress, in decompression.cpp.
void decompress(const CodeLayout&, const uint8_t* codes, const std::vector<std::vector<int64_t>>& places, float scale, float* sum,
                size_t begin, size_t end);

}  // namespace starling::kernels::STARLING_ISA
