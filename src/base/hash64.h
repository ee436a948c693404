// XXH3 of the library xxHash, 64 bits: a checksum for files that are too large for SHA-256 at every start. It detects damage, not
// tampering.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace starling {

/// Returns the hash of bytes in memory; with another seed it is another function.
uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0);

// The same of a value without padding.
template <class T>
uint64_t hash64_of(const T& value) {
  return hash64(std::as_bytes(std::span(&value, 1)));
}

// The same, without a seed, of bytes that come in pieces.
class Hash64 {
 public:
  Hash64();
  ~Hash64();
  /// Adds bytes; how they are split among calls makes no difference.
  void update(std::span<const std::byte> bytes);
  /// Returns the hash of everything added so far.
  uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace starling
