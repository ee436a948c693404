#include "tensor/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace starling {
namespace {

// Large blocks come straight from the system: zero without being touched, and given back when they are freed.
constexpr int64_t kMapped = int64_t{1} << 20;

class HostMemory : public Memory {
 public:
  bool host() const override { return true; }

  std::byte* allocate(int64_t bytes) override {
    void* memory = nullptr;
    if (bytes >= kMapped) {
      memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) memory = nullptr;
      if (memory) madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // a hint: failure changes nothing but speed
    } else {
      const size_t rounded = std::max<size_t>(static_cast<size_t>(bytes + 63) / 64 * 64, 64);
      memory = std::aligned_alloc(64, rounded);
      if (memory) std::memset(memory, 0, rounded);
    }
    if (memory == nullptr)
      throw OutOfMemory(
          fmt::format("out of memory: {} MiB were asked for; use smaller batches (--batch-size, --batch-tokens, train.micro-batch-tokens), "
                      "shorter sentences or a smaller model",
                      bytes >> 20));
    return static_cast<std::byte*>(memory);
  }

  void release(std::byte* at, int64_t bytes) override {
    if (bytes >= kMapped)
      munmap(at, static_cast<size_t>(bytes));
    else
      std::free(at);
  }

  // The address may be null if there are no bytes; memset and memcpy do not accept that.
  void zero(std::byte* at, int64_t bytes) override {
    if (bytes > 0) std::memset(at, 0, static_cast<size_t>(bytes));
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void upload(std::byte* to, const std::byte* from, int64_t bytes) override { copy(to, from, bytes); }
  void download(std::byte* to, const std::byte* from, int64_t bytes) override { copy(to, from, bytes); }
};

class MetaMemory : public Memory {
 public:
  bool host() const override { return false; }
  std::byte* allocate(int64_t) override { return nullptr; }
  void release(std::byte*, int64_t) override {}
  void zero(std::byte*, int64_t) override {}
  void copy(std::byte*, const std::byte*, int64_t) override {}
  void upload(std::byte*, const std::byte*, int64_t) override {}
  void download(std::byte*, const std::byte*, int64_t bytes) override {
    CHECK(false, "the host reads {} bytes of a tensor without elements", bytes);
  }
};

}  // namespace

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

Memory& meta_memory() {
  static MetaMemory memory;
  return memory;
}

}  // namespace starling
