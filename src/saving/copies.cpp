#include "saving/copies.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/memory.h"

namespace starling {
namespace {

constexpr size_t kPiece = 1 << 20;  // bytes that a thread copies at once
constexpr double kSpare = 3;        // times the memory that copies need must be usable

// Writes into memory of the given size, beyond it into a string.
class CopyingSink final : public ByteSink {
 public:
  CopyingSink(std::byte* to, uint64_t capacity, int threads) : to_(to), capacity_(capacity), threads_(threads) {}
  using ByteSink::write;
  void write(std::span<const std::byte> bytes) override {
    if (!more.empty() || filled + bytes.size() > capacity_) {
      more.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return;
    }
    std::byte* const to = to_ + filled;
    const auto pieces = static_cast<int64_t>((bytes.size() + kPiece - 1) / kPiece);
#pragma omp parallel for num_threads(threads_) if (pieces > 4 && threads_ > 1)
    for (int64_t i = 0; i < pieces; ++i) {
      const size_t begin = static_cast<size_t>(i) * kPiece;
      std::memcpy(to + begin, bytes.data() + begin, std::min(kPiece, bytes.size() - begin));
    }
    filled += bytes.size();
  }
  uint64_t filled = 0;
  std::string more;

 private:
  std::byte* to_;
  uint64_t capacity_;
  int threads_;
};

}  // namespace

bool Copies::make_room(std::span<const Part> parts) {
  blocks_.resize(std::max(blocks_.size(), parts.size()));
  double more = 0;
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].expected_bytes > blocks_[i].capacity) more += static_cast<double>(parts[i].expected_bytes);
  if (more > 0 && kSpare * more * sharing_ > static_cast<double>(usable_memory().bytes)) return false;
  try {
    for (size_t i = 0; i < parts.size(); ++i) {
      Block& block = blocks_[i];
      if (block.capacity >= parts[i].expected_bytes) continue;
      block = {};  // before the new one is there
      block = {std::make_unique_for_overwrite<std::byte[]>(parts[i].expected_bytes), parts[i].expected_bytes};
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

std::vector<Part> Copies::of(std::span<const Part> parts) {
  std::vector<Part> copies;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Block& block = blocks_[i];
    CopyingSink sink(block.bytes.get(), block.capacity, threads_);
    parts[i].write(sink);
    const std::span<const std::byte> bytes(block.bytes.get(), sink.filled);
    copies.push_back({parts[i].name,
                      [bytes, more = std::move(sink.more)](ByteSink& to) {
                        to.write(bytes);
                        to.write(more);
                      },
                      parts[i].expected_bytes});
  }
  return copies;
}

}  // namespace starling
