// Memories that tensors lie in. A backend has one, which holds everything its ops touch; the default is the host's. Only ops, and copying
// and zeroing tensors, reach a memory that is not the host's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "base/memory.h"

namespace starling {

struct OutOfMemory : Error {
  using Error::Error;
};

class Memory {
 public:
  virtual ~Memory() = default;
  // Whether the host may read and write its addresses.
  virtual bool host() const = 0;
  // Returns zeroed memory, aligned to at least 64 bytes; null if this memory keeps nothing. Throws OutOfMemory if there is not enough.
  virtual std::byte* allocate(int64_t bytes) = 0;
  virtual void release(std::byte* at, int64_t bytes) = 0;
  virtual void zero(std::byte* at, int64_t bytes) = 0;
  // Copies within this memory; the ranges must not overlap.
  virtual void copy(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  // Copy from and to host memory; they return when the host may use its buffer again.
  virtual void upload(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  virtual void download(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  // How much can still be allocated.
  virtual UsableMemory usable() const { return usable_memory(); }
  // Declares the contents dead, although the range will be reused: a memory for tests overwrites them.
  virtual void discard(std::byte* /*at*/, int64_t /*bytes*/) {}
};

// 64-byte aligned; large blocks come straight from the system, with a request for huge pages.
Memory& host_memory();

// Keeps nothing: its tensors have a size but no elements, for work that is only counted or timed. Copying and zeroing do nothing; reading
// an element is an error, since whatever it returned would look like a number.
Memory& meta_memory();

}  // namespace starling
