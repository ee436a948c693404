// bf16 rounding over all bit patterns, views, and the arena's stack discipline.
#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace starling {
namespace {

float from_bits(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

TEST(Bf16, RoundsToNearestEven) {
  for (uint32_t high = 0; high < 0x10000; ++high)
    for (uint32_t low : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const float f = from_bits(high << 16 | low);
      const bf16 r = round_to_bf16(f);
      if (std::isnan(f)) {
        ASSERT_TRUE(std::isnan(widen(r)));
        continue;
      }
      // The nearer of the two neighbours; a tie goes to the even one.
      const uint32_t up = low > 0x8000u || (low == 0x8000u && high % 2 == 1);
      ASSERT_EQ(r.bits, static_cast<uint16_t>(high + up)) << std::hex << high << " " << low;
    }
}

TEST(Tensor, ViewsShareMemoryAndKnowTheirBounds) {
  const Tensor t({4, 3}, DType::f32);
  EXPECT_EQ(t.to_doubles(), std::vector<double>(12, 0.0));
  const Tensor middle = t.rows(1, 3);
  middle.data<float>()[0] = 7;
  EXPECT_EQ(t.data<float>()[3], 7);
  EXPECT_EQ(t.slice(3, {3}).data<float>()[0], 7);
  EXPECT_THROW(t.rows(3, 5), InternalError);
  EXPECT_THROW(t.slice(10, {3}), InternalError);
  EXPECT_THROW(t.view({5}), InternalError);
  EXPECT_THROW(t.data<bf16>(), InternalError);
}

TEST(Arena, ReleasedMemoryIsUsedAgainAndTensorsDoNotOverlap) {
  Arena arena(host_memory());
  const Tensor first = arena.allocate({100}, DType::f32);
  const auto mark = arena.mark();
  const Tensor second = arena.allocate({7, 3}, DType::bf16);
  EXPECT_GE(second.raw(), first.raw() + first.bytes());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second.raw()) % 64, 0u);
  arena.release(mark);
  EXPECT_EQ(arena.allocate({1}, DType::f32).raw(), second.raw());
  const Tensor large = arena.allocate({int64_t{20} << 20}, DType::f32);  // larger than a chunk
  large.data<float>()[large.count() - 1] = 1;
  const int64_t used = arena.most_used();
  EXPECT_NEAR(static_cast<double>(used), (20 << 20) * 4.0, 2000);
  EXPECT_GT(arena.capacity(), used + (7 << 20));  // the rest of the first chunk
  for (int step = 0; step < 3; ++step) {          // from here on one chunk holds it all
    arena.release({});
    const Tensor small = arena.allocate({100}, DType::f32);
    EXPECT_EQ(arena.allocate({int64_t{20} << 20}, DType::f32).raw(), small.raw() + 512);
    EXPECT_EQ(arena.capacity(), used);
  }
}

}  // namespace
}  // namespace starling
