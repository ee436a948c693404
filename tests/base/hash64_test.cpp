// XXH3 against the values that its authors check their implementations with (xxHash, tests/sanity_test_vectors.h): the bytes are made by
// their generator.
#include "base/hash64.h"

#include <gtest/gtest.h>

#include <vector>

namespace starling {
namespace {

TEST(Hash64, PublishedVectors) {
  struct Case {
    size_t size;
    uint64_t plain, seeded;
  };
  constexpr uint64_t kSeed = 11400714785074694797u;
  for (const Case& c : {Case{0, 0x2D06800538D394C2u, 0xA8A6B918B2F0364Au},
                        {1, 0xC44BDFF4074EECDBu, 0x032BE332DD766EF8u},
                        {80, 0xBCDEFBBB2C47C90Au, 0xC6DD0CB699532E73u},
                        {195, 0xCD94217EE362EC3Au, 0xBA68003D370CB3D9u},
                        {2048, 0xDD59E2C3A5F038E0u, 0x66F81670669ABABCu},
                        {2367, 0xCB37AEB9E5D361EDu, 0xD2DB3415B942B42Au}}) {
    std::vector<std::byte> bytes(c.size);
    uint64_t generator = 2654435761u;
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(generator >> 56);
      generator *= kSeed;
    }
    EXPECT_EQ(hash64(bytes), c.plain) << c.size;
    EXPECT_EQ(hash64(bytes, kSeed), c.seeded) << c.size;
    for (const size_t piece : {1u, 33u, 1000u}) {
      Hash64 hash;
      for (size_t at = 0; at < bytes.size(); at += piece) hash.update(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
      EXPECT_EQ(hash.digest(), c.plain) << c.size << " by " << piece;
    }
  }
}

}  // namespace
}  // namespace starling
