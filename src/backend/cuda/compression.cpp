// Compression: the layout of the codes goes to the card with each op.
#include "backend/compression.h"

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/kernels/compression.h"

namespace starling::STARLING_CUDA {

// Scratch 0 and 1: chunks and parts; 2: places of `count` codes.
kernels::Codes CudaBackend::send_layout(const CodeLayout& layout, int64_t count) {
  CHECK(layout.element == 4, "codes of elements of {} bytes", layout.element);
  std::vector<kernels::Chunk> chunks;
  std::vector<kernels::Part> parts;
  for (const CodePart& part : layout.parts) {
    const auto first = static_cast<int32_t>(part.first), last = static_cast<int32_t>(part.last),
               number = static_cast<int32_t>(parts.size());
    parts.push_back({part.keep, first < last ? layout.chunks[part.last - 1].header + 2 : 0, first, last});
    for (size_t c = part.first; c < part.last; ++c) {
      const CodeChunk& at = layout.chunks[c];
      chunks.push_back({at.begin, at.header, at.place, at.count, at.keep, number});
    }
  }
  const auto send = [&](size_t slot, const auto& list) {
    using Element = typename std::decay_t<decltype(list)>::value_type;
    const auto n = static_cast<int64_t>(list.size());
    auto* const there = scratch<Element>(slot, n);
    // In pieces that go through pinned memory, so that the host does not wait (device.cpp).
    constexpr auto kPiece = static_cast<int64_t>((size_t{64} << 10) / sizeof(Element));
    for (int64_t i = 0; i < n; i += kPiece)
      memory().upload(reinterpret_cast<std::byte*>(there + i), reinterpret_cast<const std::byte*>(list.data() + i),
                      std::min(kPiece, n - i) * static_cast<int64_t>(sizeof(Element)));
    return there;
  };
  kernels::Codes codes{};
  codes.chunks = send(0, chunks), codes.parts = send(1, parts);
  codes.chunk_count = static_cast<int64_t>(chunks.size()), codes.part_count = static_cast<int64_t>(parts.size());
  codes.bytes = layout.bytes, codes.coding = static_cast<kernels::Coding>(layout.coding), codes.by_tensor = layout.by_tensor;
  if (layout.by_tensor) codes.places = scratch<int64_t>(2, count * codes.chunk_count);
  return codes;
}

void CudaBackend::compress(const Compression& c) {
  kernels::Compress t{};
  t.codes = send_layout(*c.layout, 1);
  CHECK(c.code.count() == c.layout->bytes, "a code of {} bytes for a layout of {}", c.code.count(), c.layout->bytes);
  t.x = at<float>(c.x), t.residual = at<float>(c.residual), t.velocity = at<float>(c.velocity);
  t.decay = static_cast<float>(c.decay), t.momentum = static_cast<float>(c.momentum), t.local_scale = static_cast<float>(c.local_scale);
  t.local = static_cast<kernels::LocalPart>(c.local), t.code = at<uint8_t>(c.code), t.bad = at<double>(c.bad);
  c.code.zero();
  if (t.codes.by_tensor) {
    const int64_t bins = t.codes.part_count * kernels::kBins;
    const int64_t thresholds = t.codes.part_count * static_cast<int64_t>(sizeof(kernels::Threshold) / sizeof(int32_t));
    auto* const room = scratch<int32_t>(3, bins + thresholds + 2 * t.codes.chunk_count);
    t.histograms = reinterpret_cast<uint32_t*>(room), t.thresholds = reinterpret_cast<kernels::Threshold*>(room + bins);
    t.above = room + bins + thresholds, t.ties = t.above + t.codes.chunk_count;
    memory().zero(reinterpret_cast<std::byte*>(room), bins * static_cast<int64_t>(sizeof(uint32_t)));
  }
  kernels::compress(t, stream());
}

void CudaBackend::decompress(const CodeLayout& layout, const Tensor& codes, double scale, const Tensor& sum) {
  const int64_t count = layout.bytes > 0 ? codes.count() / layout.bytes : 0;
  kernels::decompress({send_layout(layout, count), at<uint8_t>(codes), count, static_cast<float>(scale), at<float>(sum)}, stream());
}

}  // namespace starling::STARLING_CUDA
