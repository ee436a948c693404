#include "storage/tensorboard.h"

#include <array>
#include <bit>
#include <cstring>

namespace starling {
namespace {

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0x82F63B78u : 0);
    table[i] = value;
  }
  return table;
}

template <class Number>
std::string bytes_of(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);  // little-endian, as every machine that Starling runs on
  return bytes;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// Fields of Protocol Buffers: a key, which is number and kind, and the value.
std::string key(uint64_t field, uint64_t kind) { return varint(field << 3 | kind); }
std::string of_double(uint64_t field, double value) { return key(field, 1) + bytes_of(value); }
std::string of_float(uint64_t field, float value) { return key(field, 5) + bytes_of(value); }
std::string of_integer(uint64_t field, int64_t value) { return key(field, 0) + varint(static_cast<uint64_t>(value)); }
std::string of_bytes(uint64_t field, std::string_view value) { return key(field, 2) + varint(value.size()) + std::string(value); }

// The checksum is rotated and shifted, since that of data with its own checksum in it would be weak.
std::string masked_checksum(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return bytes_of(std::rotr(crc, 15) + 0xA282EAD8u);
}

std::string record(const std::string& event) {
  const std::string length = bytes_of(static_cast<uint64_t>(event.size()));
  return length + masked_checksum(length) + event + masked_checksum(event);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return crc ^ 0xFFFFFFFFu;
}

std::string tensorboard_header(double seconds) { return record(of_double(1, seconds) + of_bytes(3, "brain.Event:2")); }

std::string tensorboard_restart(double seconds, int64_t step) {
  constexpr int64_t kStart = 1;  // a status of SessionLog
  return record(of_double(1, seconds) + of_integer(2, step) + of_bytes(7, of_integer(1, kStart)));
}

std::string tensorboard_record(double seconds, int64_t step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) summary += of_bytes(1, of_bytes(1, tag) + of_float(2, static_cast<float>(value)));
  return record(of_double(1, seconds) + of_integer(2, step) + of_bytes(5, summary));
}

}  // namespace starling
