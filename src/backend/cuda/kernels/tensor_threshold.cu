// The largest elements of whole tensors: finds their threshold digit by digit from histograms, and the places of their entries.
#include "backend/cuda/kernels/chunk.cuh"

namespace starling::STARLING_CUDA::kernels {
namespace {

struct Digit {
  Compress task;
  int shift;
};

// One block per chunk adds to the histogram of its part. The first time it also adds residual and gradient.
__global__ void histogram_kernel(Digit d) {
  const Compress& t = d.task;
  const Chunk at = t.codes.chunks[blockIdx.x];
  auto* const bins = shared<uint32_t>();
  for (int b = static_cast<int>(threadIdx.x); b < kBins; b += kChunkThreads) bins[b] = 0;
  __syncthreads();
  const uint32_t found = d.shift == 20 ? 0 : t.thresholds[at.part].bits;
  for (int64_t i = at.begin + threadIdx.x; i < at.begin + at.count; i += kChunkThreads) {
    if (d.shift == 20) t.residual[i] = add_up(t, i);
    const uint32_t m = magnitude(t.residual[i]);
    if (m >= kNotFinite) raise_to(t.bad, static_cast<double>(i + 1));
    if (matches(m, found, d.shift)) atomicAdd(bins + digit_of(m, d.shift), 1u);
  }
  __syncthreads();
  uint32_t* const all = t.histograms + int64_t{at.part} * kBins;
  for (int b = static_cast<int>(threadIdx.x); b < kBins; b += kChunkThreads)
    if (bins[b] != 0) atomicAdd(all + b, bins[b]);
}

// One block per part picks the next digit and clears the histogram.
__global__ void pick_kernel(Digit d) {
  const Compress& t = d.task;
  Threshold& threshold = t.thresholds[blockIdx.x];
  uint32_t* const bins = t.histograms + int64_t{blockIdx.x} * kBins;
  const int64_t keep = t.codes.parts[blockIdx.x].keep, k = d.shift == 20 ? keep : threshold.left;
  const uint32_t upper = d.shift == 20 ? 0 : threshold.bits;
  __syncthreads();
  if (keep == 0) {
    if (threadIdx.x == 0) threshold = {0x7fffffffu, 0};  // above all of them
  } else {
    pick_digit(bins, k, shared<int64_t>(), [&](uint32_t digit, int64_t left, int64_t) { threshold = {upper | digit << d.shift, left}; });
  }
  __syncthreads();
  if (d.shift == 0 && threadIdx.x == 0 && threshold.bits == 0) threshold.left = 0;  // zeros are not sent
  for (int b = static_cast<int>(threadIdx.x); b < kBins; b += kChunkThreads) bins[b] = 0;
}

__global__ void count_kernel(Compress t) {
  const Chunk at = t.codes.chunks[blockIdx.x];
  const uint32_t threshold = t.thresholds[at.part].bits;
  int counts = 0;  // above, and 2^16 times those at it
  for (int64_t i = at.begin + threadIdx.x; i < at.begin + at.count; i += kChunkThreads) {
    const uint32_t m = magnitude(t.residual[i]);
    counts += m > threshold ? 1 : m == threshold ? 1 << 16 : 0;
  }
  counts = block_reduce(counts, Sum{}, shared<int>());
  if (threadIdx.x == 0) {
    t.above[blockIdx.x] = counts & 0xffff;
    t.ties[blockIdx.x] = counts >> 16;
  }
}

// One block per part: of the elements at the threshold, the first ones are sent.
__global__ void quota_kernel(Compress t) {
  const Part part = t.codes.parts[blockIdx.x];
  int64_t left = t.thresholds[blockIdx.x].left;
  for (int64_t begin = part.first; begin < part.last; begin += kChunkThreads) {
    const int64_t c = begin + threadIdx.x;
    const int64_t ties = c < part.last ? t.ties[c] : 0;
    int64_t total = 0;
    const int64_t before = sum_before(ties, shared<int64_t>(), total), rest = left - before;
    left -= total;
    if (c >= part.last) continue;
    const int64_t quota = rest <= 0 ? 0 : rest < ties ? rest : ties;
    t.ties[c] = quota == ties ? -1 : static_cast<int32_t>(quota);
    put_u16(t.code + t.codes.chunks[c].header, static_cast<int>(t.above[c] + quota));
  }
}

// One block per part of a code.
__global__ void places_kernel(Places t) {
  const Codes& codes = t.codes;
  const int64_t code = blockIdx.x / codes.part_count;
  const Part part = codes.parts[blockIdx.x % codes.part_count];
  int64_t place = part.place;
  for (int64_t begin = part.first; begin < part.last; begin += kChunkThreads) {
    const int64_t c = begin + threadIdx.x;
    int64_t bytes = 0, total = 0;
    if (c < part.last) bytes = chunk_bytes(codes.coding, get_u16(t.code + code * codes.bytes + codes.chunks[c].header));
    const int64_t before = sum_before(bytes, shared<int64_t>(), total);
    if (c < part.last) codes.places[code * codes.chunk_count + c] = place + before;
    place += total;
  }
}

constexpr int64_t kScratch = kChunkWarps * sizeof(int64_t);

}  // namespace

void find_thresholds(const Compress& t, cudaStream_t stream) {
  for (int shift = 20; shift >= 0; shift -= 10) {
    launch(histogram_kernel, t.codes.chunk_count, kChunkThreads, kBins * sizeof(uint32_t), stream, Digit{t, shift});
    launch(pick_kernel, t.codes.part_count, kChunkThreads, kScratch, stream, Digit{t, shift});
  }
  launch(count_kernel, t.codes.chunk_count, kChunkThreads, kScratch, stream, t);
  launch(quota_kernel, t.codes.part_count, kChunkThreads, kScratch, stream, t);
  find_places({t.codes, t.code, 1}, stream);
}
void find_places(const Places& t, cudaStream_t stream) {
  launch(places_kernel, t.count * t.codes.part_count, kChunkThreads, kScratch, stream, t);
}

}  // namespace starling::STARLING_CUDA::kernels
