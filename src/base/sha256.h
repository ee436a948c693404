// SHA-256, the fingerprint of every file in a checkpoint's manifest, by nettle: small, and the server's HTTP library brings it along.
#pragma once

#include <nettle/sha2.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace starling {

class FileSystem;

using Sha256Digest = std::array<uint8_t, SHA256_DIGEST_SIZE>;

// An incremental hash: call update() any number of times, then digest() once.
class Sha256 {
 public:
  Sha256() { sha256_init(&context_); }
  void update(std::span<const std::byte> bytes);
  Sha256Digest digest();

 private:
  sha256_ctx context_;
};

// Returns 64 lower-case hexadecimal digits.
std::string to_hex(const Sha256Digest& digest);
// Returns the hash of bytes in memory, in hexadecimal.
std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view bytes);
// Returns the hash of a file's content, read in pieces; throws IoError if it cannot be read.
std::string sha256_file(FileSystem& files, const std::string& path);

}  // namespace starling
