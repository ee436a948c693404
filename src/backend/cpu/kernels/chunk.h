// A chunk that is being encoded, and the choice of the elements that are sent.
#pragma once

#include <bit>

#include "backend/cpu/kernels/compression.h"
#include "backend/cpu/kernels/vectors.h"

namespace starling::kernels::STARLING_ISA {

inline int32_t magnitude(float x) { return std::bit_cast<int32_t>(x) & 0x7fffffff; }
inline float positive(int32_t bits) { return std::bit_cast<float>(bits); }

// A chunk to be sent, and working memory for the choice.
struct Chunk {
  float* a;  // residual plus gradient, in the residual's place
  int64_t n;
  const float *next_x, *next_residual;  // of the next chunk, or of this one

  int32_t top[1024];  // the largest magnitude of each group
  int64_t entries = 0;
  int32_t index[kChunk], magnitudes[kChunk + L];  // of the entries, ascending by index
  float gradient[kChunk];                         // at the entries
  float sent[kChunk];                             // of the entries, or of all elements
};

// Makes the elements of at least the threshold (> 0) the entries.
void choose(Chunk& c, int32_t threshold);
// Keeps the entries above the threshold, and the first `ties` of those equal to it.
void truncate(Chunk& c, int32_t threshold, int64_t ties);
// Makes the k largest nonzero elements the entries.
void choose_largest(Chunk& c, int64_t k);

// CompressionTable::decompress, in decompression.cpp.
void decompress(const CodeLayout&, const uint8_t* codes, const std::vector<std::vector<int64_t>>& places, float scale, float* sum,
                size_t begin, size_t end);

}  // namespace starling::kernels::STARLING_ISA
