// The checksum of large files: cut as one likes, and no small change hides.
#include "base/hash64.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace starling {
namespace {

std::vector<std::byte> some_bytes(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 37 + (i >> 5));
  return bytes;
}

TEST(Hash64, DoesNotDependOnTheCuts) {
  const auto bytes = some_bytes(1000);
  for (const size_t piece : {1u, 7u, 31u, 32u, 33u, 64u, 999u}) {
    Hash64 hash;
    for (size_t at = 0; at < bytes.size(); at += piece) hash.update(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    EXPECT_EQ(hash.digest(), hash64(bytes)) << piece;
  }
}

TEST(Hash64, EveryFlippedBitAndEveryLengthShows) {
  auto bytes = some_bytes(100);
  std::set<uint64_t> seen{hash64(bytes)};
  for (size_t bit = 0; bit < 800; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    seen.insert(hash64(bytes));
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
  EXPECT_EQ(seen.size(), 801u);
  const std::vector<std::byte> zeros(100);
  for (size_t size = 0; size <= 100; ++size) seen.insert(hash64(std::span(zeros).first(size)));
  EXPECT_EQ(seen.size(), 902u);
}

}  // namespace
}  // namespace starling
