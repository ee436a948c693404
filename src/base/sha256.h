// SHA-256 (FIPS 180-4), the fingerprint of every file in a checkpoint's manifest. It is implemented here because nothing else of a
// cryptography library is needed. It uses the processor's SHA instructions if there are any (checked once, at run time).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace starling {

class FileSystem;

using Sha256Digest = std::array<uint8_t, 32>;

// An incremental hash: call update() any number of times, then digest() once.
class Sha256 {
 public:
  // `allow_hardware` false forces the portable rounds (for tests).
  explicit Sha256(bool allow_hardware = true);
  void update(std::span<const std::byte> bytes);
  // Ends the message and returns its hash; the object must not be updated afterwards.
  Sha256Digest digest();

 private:
  std::array<uint32_t, 8> state_;
  std::array<std::byte, 64> block_{};
  uint64_t length_ = 0;  // bytes so far; length_ % 64 of them wait in block_
  bool hardware_;
};

// Returns 64 lower-case hexadecimal digits.
std::string to_hex(const Sha256Digest& digest);
// Returns the hash of bytes in memory, in hexadecimal.
std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view bytes);
// Returns the hash of a file's content, read in pieces; throws IoError if it cannot be read.
std::string sha256_file(FileSystem& files, const std::string& path);
// Returns whether this processor has SHA instructions.
bool sha256_has_hardware();

}  // namespace starling
