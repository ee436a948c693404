// Where tensors lie. A backend has one memory, in which everything lies that its ops touch; the host's is the default. Nothing but ops,
// copies and zeroes of tensors reaches a memory that is not the host's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory.h"

namespace starling {

class Memory {
 public:
  virtual ~Memory() = default;
  // Whether the host may read and write at its addresses.
  virtual bool host() const = 0;
  // Filled with zeros and aligned to 64 bytes at least; null where nothing is kept. Throws Error when there is not so much.
  virtual std::byte* allocate(int64_t bytes) = 0;
  virtual void release(std::byte* at, int64_t bytes) = 0;
  virtual void zero(std::byte* at, int64_t bytes) = 0;
  // Within this memory; the places do not overlap.
  virtual void copy(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  // From and to the host's; they return when the host may use its place again.
  virtual void upload(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  virtual void download(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  // What can still be allocated.
  virtual UsableMemory usable() const { return usable_memory(); }
  // What lies there is of no use any more, though the place will be used again: a memory for tests overwrites it.
  virtual void discard(std::byte* /*at*/, int64_t /*bytes*/) {}
};

// 64-byte aligned; large blocks come from the system and ask for huge pages.
Memory& host_memory();

// Keeps nothing: its tensors stand for tensors of their size, where work is only counted or timed. Copies and zeroes do nothing; reading
// an element is an error, since whatever came back would look like a number.
Memory& meta_memory();

}  // namespace starling
