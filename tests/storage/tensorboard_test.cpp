// TensorBoard's files, read by a reader of its own.
#include "storage/tensorboard.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace starling {
namespace {

TEST(TensorBoard, ChecksumsAreThoseOfRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
}

// Fields of Protocol Buffers by number; those of the kinds 0, 1 and 5 as raw bytes.
using Fields = std::multimap<uint64_t, std::string>;
Fields fields_of(std::string_view bytes) {
  Fields fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(at++));
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.size()) {
    const uint64_t key = varint(), kind = key & 7;
    if (kind == 0) {
      fields.emplace(key >> 3, std::to_string(varint()));
      continue;
    }
    const size_t size = kind == 1 ? 8 : kind == 5 ? 4 : varint();
    fields.emplace(key >> 3, bytes.substr(at, size));
    at += size;
  }
  return fields;
}

TEST(TensorBoard, BeginsAsItsOwnFilesDo) {
  // The first bytes of any file that TensorFlow has written: the length 24 and its checksum.
  EXPECT_EQ(tensorboard_header(1.5).substr(0, 12), std::string("\x18\0\0\0\0\0\0\0\xa3\x7fK\"", 12));
  EXPECT_EQ(fields_of(tensorboard_header(1.5).substr(12, 24)).find(3)->second, "brain.Event:2");
}

// event.proto and event_accumulator.py: a SessionLog (field 7) whose status (field 1) is START (1), at the first step to be forgotten.
TEST(TensorBoard, ForgetsWhatARunRepeats) {
  const std::string record = tensorboard_restart(1.5, 21);
  const Fields fields = fields_of(std::string_view(record).substr(12, record.size() - 16));
  EXPECT_EQ(fields.find(2)->second, "21");
  EXPECT_EQ(fields_of(fields.find(7)->second).find(1)->second, "1");
}

TEST(TensorBoard, HoldsStepsAndScalars) {
  const std::string record = tensorboard_record(1700000000.25, 300, {{"train/loss", 2.5}, {"valid/bleu", 31.25}});
  uint64_t length = 0;
  std::memcpy(&length, record.data(), 8);
  ASSERT_EQ(record.size(), 8 + 4 + length + 4);
  const std::string event = record.substr(12, length);
  uint32_t stored = 0;
  std::memcpy(&stored, record.data() + 12 + length, 4);
  const uint32_t crc = crc32c(event);
  EXPECT_EQ(stored, ((crc >> 15) | (crc << 17)) + 0xA282EAD8u);
  const Fields fields = fields_of(event);
  double seconds = 0;
  std::memcpy(&seconds, fields.find(1)->second.data(), 8);
  EXPECT_EQ(seconds, 1700000000.25);
  EXPECT_EQ(fields.find(2)->second, "300");
  std::map<std::string, float> values;
  for (const auto& [number, bytes] : fields_of(fields.find(5)->second)) {
    const Fields value = fields_of(bytes);
    std::memcpy(&values[value.find(1)->second], value.find(2)->second.data(), 4);
  }
  EXPECT_EQ(values, (std::map<std::string, float>{{"train/loss", 2.5f}, {"valid/bleu", 31.25f}}));
}

}  // namespace
}  // namespace starling
