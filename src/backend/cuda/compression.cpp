// Compression. The layout of codes is uploaded to the card once.
#include "backend/compression.h"

#include <algorithm>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/kernels/compression.h"

namespace starling::STARLING_CUDA {
namespace {

constexpr size_t kMostLayouts = 256;

}  // namespace

// A layout as the card has it, and its place there.
struct CudaBackend::SentLayout {
  std::vector<kernels::Chunk> chunks;
  std::vector<kernels::Part> parts;
  std::unique_ptr<Storage> chunks_there, parts_there;

  bool same(const SentLayout& x) const {
    return std::equal(chunks.begin(), chunks.end(), x.chunks.begin(), x.chunks.end(),
                      [](const kernels::Chunk& a, const kernels::Chunk& b) {
                        return a.begin == b.begin && a.header == b.header && a.place == b.place && a.count == b.count && a.keep == b.keep &&
                               a.part == b.part;
                      }) &&
           std::equal(parts.begin(), parts.end(), x.parts.begin(), x.parts.end(), [](const kernels::Part& a, const kernels::Part& b) {
             return a.keep == b.keep && a.place == b.place && a.first == b.first && a.last == b.last;
           });
  }
};

// Cached by the layout's host address, at which another layout may later lie. Scratch 0: places of `count` codes.
kernels::Codes CudaBackend::codes_of(const CodeLayout& layout, int64_t count) {
  CHECK(layout.element == 4, "codes of elements of {} bytes", layout.element);
  auto now = std::make_shared<SentLayout>();
  for (const CodePart& part : layout.parts) {
    const auto first = static_cast<int32_t>(part.first), last = static_cast<int32_t>(part.last),
               number = static_cast<int32_t>(now->parts.size());
    now->parts.push_back({part.keep, first < last ? layout.chunks[part.last - 1].header + 2 : 0, first, last});
    for (size_t c = part.first; c < part.last; ++c) {
      const CodeChunk& at = layout.chunks[c];
      now->chunks.push_back({at.begin, at.header, at.place, at.count, at.keep, number});
    }
  }
  if (layouts_.size() > kMostLayouts) layouts_.clear();
  std::shared_ptr<SentLayout>& sent = layouts_[&layout];
  if (!sent || !sent->same(*now)) {
    const auto send = [&](const auto& list) {
      const auto bytes = static_cast<int64_t>(list.size() * sizeof list[0]);
      auto there = std::make_unique<Storage>(bytes, memory());
      memory().upload(there->data(), reinterpret_cast<const std::byte*>(list.data()), bytes);
      return there;
    };
    now->chunks_there = send(now->chunks);
    now->parts_there = send(now->parts);
    sent = std::move(now);
  }
  kernels::Codes codes{};
  codes.chunks = reinterpret_cast<const kernels::Chunk*>(sent->chunks_there->data());
  codes.parts = reinterpret_cast<const kernels::Part*>(sent->parts_there->data());
  codes.chunk_count = static_cast<int64_t>(sent->chunks.size());
  codes.part_count = static_cast<int64_t>(sent->parts.size());
  codes.bytes = layout.bytes;
  codes.coding = static_cast<kernels::Coding>(layout.coding);
  codes.by_tensor = layout.by_tensor;
  if (layout.by_tensor) codes.places = scratch<int64_t>(0, count * codes.chunk_count);
  return codes;
}

void CudaBackend::compress(const Compression& c) {
  kernels::Compress t{};
  t.codes = codes_of(*c.layout, 1);
  CHECK(c.code.count() == c.layout->bytes, "a code of {} bytes for a layout of {}", c.code.count(), c.layout->bytes);
  t.x = at<float>(c.x);
  t.residual = at<float>(c.residual);
  t.velocity = at<float>(c.velocity);
  t.decay = static_cast<float>(c.decay);
  t.momentum = static_cast<float>(c.momentum);
  t.local_scale = static_cast<float>(c.local_scale);
  t.local = static_cast<kernels::LocalPart>(c.local);
  t.code = at<uint8_t>(c.code);
  t.bad = at<double>(c.bad);
  c.code.zero();
  if (t.codes.by_tensor) {
    const int64_t bins = t.codes.part_count * kernels::kBins;
    const int64_t thresholds = t.codes.part_count * static_cast<int64_t>(sizeof(kernels::Threshold) / sizeof(int32_t));
    auto* const room = scratch<int32_t>(1, bins + thresholds + 2 * t.codes.chunk_count);
    t.histograms = reinterpret_cast<uint32_t*>(room);
    t.thresholds = reinterpret_cast<kernels::Threshold*>(room + bins);
    t.above = room + bins + thresholds;
    t.ties = t.above + t.codes.chunk_count;
    memory().zero(reinterpret_cast<std::byte*>(room), bins * static_cast<int64_t>(sizeof(uint32_t)));
  }
  kernels::compress(t, stream());
}

void CudaBackend::decompress(const CodeLayout& layout, const Tensor& codes, double scale, const Tensor& sum) {
  const int64_t count = layout.bytes > 0 ? codes.count() / layout.bytes : 0;
  kernels::decompress({codes_of(layout, count), at<uint8_t>(codes), count, static_cast<float>(scale), at<float>(sum)}, stream());
}

}  // namespace starling::STARLING_CUDA
