#include "saving/copies.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/memory.h"
#include "base/resource_error.h"
#include "base/start_threads.h"

namespace starling {
namespace {

constexpr size_t kPiece = 1 << 20;  // bytes that a thread copies at once
constexpr uint64_t kPage = 4096;

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

void Copies::prepare(uint64_t bytes) {
  join();
  if (capacity_ >= bytes || !fit(static_cast<double>(bytes) * sharing_, static_cast<double>(usable_memory().bytes))) return;
  try {
    preparing_ = start_thread("copies for checkpoints", [this, bytes] {
      if (!take(bytes)) return;
      for (uint64_t at = 0; at < bytes; at += kPage) bytes_[at] = std::byte{};  // the system gives a page when it is touched
    });
  } catch (const ResourceError&) {
  }
}

bool Copies::take(uint64_t bytes) {
  bytes_ = nullptr, capacity_ = 0;  // before the new memory is there
  try {
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    capacity_ = bytes;
  } catch (const std::bad_alloc&) {
  }
  return capacity_ == bytes;
}

void Copies::join() {
  if (preparing_.joinable()) preparing_.join();
}

bool Copies::make_room(std::span<const Part> parts) {
  join();
  uint64_t bytes = 0;
  for (const Part& part : parts) bytes += part.expected_bytes;
  if (bytes <= capacity_) return true;
  const double more = static_cast<double>(bytes - capacity_) * sharing_;
  return fit(more, static_cast<double>(usable_memory().bytes)) && take(bytes);
}

std::vector<Part> Copies::of(std::span<const Part> parts) {
  std::vector<Part> copies;
  std::byte* to = bytes_.get();
  for (const Part& part : parts) {
    CopyingSink sink(to, part.expected_bytes, threads_);
    part.write(sink);
    const std::span<const std::byte> bytes(to, sink.filled);
    to += part.expected_bytes;
    copies.push_back({part.name,
                      [bytes, more = std::move(sink.more)](ByteSink& sink) {
                        sink.write(bytes);
                        sink.write(more);
                      },
                      part.expected_bytes});
  }
  return copies;
}

}  // namespace starling
