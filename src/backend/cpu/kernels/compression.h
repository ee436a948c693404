// The loops of compression over chunks of 4096 elements, which stay in the first-level cache between passes. Compiled once per instruction
// set, like kernels.h.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/compression.h"

namespace starling::kernels {

struct CompressionTask {
  const CodeLayout* layout;
  float* x;
  float* residual;
  float* velocity;  // or null
  float decay, momentum;
  LocalPart local;
  float local_scale;
  uint8_t* code;
};

// Magnitudes are compared as integers, by their bits; 0x7f800000 and above are not finite.
struct CompressionTable {
  // Compresses chunks [begin, end), each with its own number of entries. Returns the first element that is not finite, or -1.
  int64_t (*compress)(const CompressionTask&, size_t begin, size_t end);
  // For entries that are chosen over a whole tensor. First step: residual = decay * residual + x and so on; appends the magnitudes of at
  // least `threshold` (> 0), counts[c - begin] of them from chunk c. `again`: the residual has already been updated. Returns as above.
  int64_t (*gather)(const CompressionTask&, size_t begin, size_t end, int32_t threshold, bool again, std::vector<int32_t>& magnitudes,
                    int32_t* counts);
  // Second step: sends what is above the threshold, and ties[c - begin] of the elements equal to it in chunk c, at code + places[c -
  // begin].
  void (*send)(const CompressionTask&, size_t begin, size_t end, int32_t threshold, const int32_t* ties, const int64_t* places);
  // sum += scale * what each of the codes holds for the chunks, one code after another; places[r] are those of code r.
  void (*decompress)(const CodeLayout&, const uint8_t* codes, const std::vector<std::vector<int64_t>>& places, float scale, float* sum,
                     size_t begin, size_t end);
};

namespace v2 {
const CompressionTable& compression();
}
namespace v3 {
const CompressionTable& compression();
}
namespace v4 {
const CompressionTable& compression();
}
namespace neon {
const CompressionTable& compression();
}

}  // namespace starling::kernels
