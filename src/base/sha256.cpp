#include "base/sha256.h"

#include "base/files.h"

namespace starling {

void Sha256::update(std::span<const std::byte> bytes) {
  sha256_update(&context_, bytes.size(), reinterpret_cast<const uint8_t*>(bytes.data()));
}

Sha256Digest Sha256::digest() {
  Sha256Digest digest;
  sha256_digest(&context_, digest.size(), digest.data());
  return digest;
}

std::string to_hex(const Sha256Digest& digest) {
  std::string text;
  for (const uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return to_hex(hash.digest());
}

std::string sha256_hex(std::string_view bytes) { return sha256_hex(std::as_bytes(std::span(bytes))); }

std::string sha256_file(FileSystem& files, const std::string& path) {
  Sha256 hash;
  files.read_pieces(path, [&](std::span<const std::byte> piece) { hash.update(piece); });
  return to_hex(hash.digest());
}

}  // namespace starling
