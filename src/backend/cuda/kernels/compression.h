// Tasks of compression.cu, tensor_threshold.cu and decompression.cu: compressed parts of flat buffers. The format is in
// backend/compression.h.
#pragma once

#include "backend/cuda/kernels/tasks.h"

namespace starling::STARLING_CUDA::kernels {

// As in backend/compression.h.
enum class Coding : uint8_t { full, bf16, two_bit, ternary, four_bit };
enum class LocalPart : uint8_t { none, sum, partial, error };

struct Chunk {
  int64_t begin, header, place;
  int32_t count, keep, part;
};
struct Part {
  int64_t keep, place;  // place: of its first chunk's entries
  int32_t first, last;
};
struct Codes {
  const Chunk* chunks;  // [chunk_count]
  const Part* parts;    // [part_count]
  int64_t chunk_count, part_count, bytes;
  Coding coding;
  bool by_tensor;
  int64_t* places;  // by_tensor: [codes, chunk_count], the places of the chunks' entries
};

constexpr int kBins = 2048;  // of histograms of magnitudes
// By tensor: the part.keep-th largest magnitude, found digit by digit, and how many elements of exactly this magnitude are sent.
struct Threshold {
  uint32_t bits;
  int64_t left;
};

struct Compress {
  Codes codes;
  float *x, *residual, *velocity;  // velocity may be null
  float decay, momentum, local_scale;
  LocalPart local;
  uint8_t* code;  // zeros
  double* bad;
  // by_tensor, working memory:
  uint32_t* histograms;   // [part_count, kBins], zeros
  Threshold* thresholds;  // [part_count]
  int32_t *above, *ties;  // [chunk_count]: entries above the threshold; entries at it, then how many of them are sent (-1: all)
};
void compress(const Compress&, cudaStream_t);
// Steps of compress(): finds the thresholds, quotas of ties and places of all parts, after which the entries of chunks are written.
void find_thresholds(const Compress&, cudaStream_t);
// The places of the entries of each code's chunks, from their headers.
struct Places {
  Codes codes;
  const uint8_t* code;
  int64_t count;  // of codes
};
void find_places(const Places&, cudaStream_t);

struct Decompress {
  Codes codes;
  const uint8_t* code;  // [count, codes.bytes]
  int64_t count;
  float scale;
  float* sum;
};
void decompress(const Decompress&, cudaStream_t);

}  // namespace starling::STARLING_CUDA::kernels
