// Adds what codes hold to a sum: one block per chunk, one code after another.
#include "backend/cuda/kernels/chunk.cuh"

namespace starling::STARLING_CUDA::kernels {
namespace {

__device__ __forceinline__ int get_index(const uint8_t* list, int i) {
  const uint8_t* const p = list + i / 2 * 3;
  return i % 2 == 0 ? p[0] | (p[1] & 15) << 8 : p[1] >> 4 | p[2] << 4;
}
__device__ __forceinline__ float get_bf16(const uint8_t* from) { return __uint_as_float(static_cast<uint32_t>(get_u16(from)) << 16); }

__device__ __forceinline__ float entry(Coding coding, const uint8_t* from, int n, int i) {
  const uint8_t* const values = from + index_bytes(n) + (coding == Coding::two_bit ? 4 : 0);
  if (coding == Coding::full)
    return __uint_as_float(static_cast<uint32_t>(get_u16(values + 4 * i)) | static_cast<uint32_t>(get_u16(values + 4 * i + 2)) << 16);
  if (coding == Coding::bf16) return get_bf16(values + 2 * i);
  const int bits = values[i / 4] >> i % 4 * 2 & 3;
  const float level = get_bf16(from + (bits & 2));
  return bits & 1 ? -level : level;
}

// sum + scale * element i of a chunk of n.
__device__ __forceinline__ float add_digit(Coding coding, const uint8_t* from, int n, int i, float scale, float sum) {
  if (coding == Coding::ternary) {
    const int bytes = (n + 4) / 5;
    int digits = from[4 + i % bytes];
    for (int p = i / bytes; p > 0; --p) digits /= 3;
    const uint32_t bits = static_cast<uint32_t>(get_u16(from)) | static_cast<uint32_t>(get_u16(from + 2)) << 16;
    const float level = __fmul_rn(scale, __uint_as_float(bits));
    return digits % 3 == 0 ? sum : __fadd_rn(sum, digits % 3 == 1 ? level : -level);
  }
  const int bytes = (n + 1) / 2, code = from[2 + i % bytes] >> (i < bytes ? 0 : 4) & 15, power = get_u16(from) - 7 + (code & 7);
  const uint32_t bits = static_cast<uint32_t>(power) << 23 | static_cast<uint32_t>(code & 8) << 28;
  return __fmaf_rn(scale, (code & 7) != 0 && power > 0 ? __uint_as_float(bits) : 0.0f, sum);
}

__global__ void decompress_kernel(Decompress t) {
  const Chunk at = t.codes.chunks[blockIdx.x];
  const Coding coding = t.codes.coding;
  float* const sum = t.sum + at.begin;
  if (!is_sparse(coding)) {
    for (int i = static_cast<int>(threadIdx.x); i < at.count; i += kChunkThreads) {
      float y = sum[i];
      for (int64_t r = 0; r < t.count; ++r) y = add_digit(coding, t.code + r * t.codes.bytes + at.place, at.count, i, t.scale, y);
      sum[i] = y;
    }
    return;
  }
  for (int64_t r = 0; r < t.count; ++r) {
    const uint8_t* const code = t.code + r * t.codes.bytes;
    const uint8_t* const from = code + (t.codes.by_tensor ? t.codes.places[r * t.codes.chunk_count + blockIdx.x] : at.place);
    const uint8_t* const indices = from + (coding == Coding::two_bit ? 4 : 0);
    const int n = get_u16(code + at.header);
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kChunkThreads) {
      float& y = sum[get_index(indices, i)];
      y = __fmaf_rn(t.scale, entry(coding, from, n, i), y);
    }
    __syncthreads();  // the next code may add to the same elements
  }
}

}  // namespace

void decompress(const Decompress& t, cudaStream_t stream) {
  if (t.codes.by_tensor) find_places({t.codes, t.code, t.count}, stream);
  launch(decompress_kernel, t.codes.chunk_count, kChunkThreads, 0, stream, t);
}

}  // namespace starling::STARLING_CUDA::kernels
