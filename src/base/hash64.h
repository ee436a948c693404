// A 64-bit checksum for files that are too large for SHA-256 at every start: four lanes of multiply and rotate, several bytes per
// clock cycle. It detects damage, not tampering: each step is a bijection of the lane and of the word, so a change within one 8-byte
// word is always detected.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace starling {

class Hash64 {
 public:
  /// Adds bytes; how they are split among calls makes no difference.
  void update(std::span<const std::byte> bytes);
  /// Returns the checksum of everything added so far.
  uint64_t digest() const;

 private:
  static constexpr size_t kStripe = 32;  // bytes: one word for each lane
  void stripe(const std::byte* bytes);

  std::array<uint64_t, 4> lanes_{0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu, 0x2545f4914f6cdd1du};
  std::array<std::byte, kStripe> rest_{};  // bytes buffered until a stripe is full
  size_t rest_size_ = 0;
  uint64_t size_ = 0;
};

uint64_t hash64(std::span<const std::byte> bytes);

}  // namespace starling
