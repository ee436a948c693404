// Tensors in memories that are not the host's, and in none.
#include "tensor/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tensor/tensor.h"

namespace starling {
namespace {

using testing::ElementsAre;

// The host's in truth, which nobody is told; what lies in it is kept inverted, so that only its own copies get it right.
class FarMemory : public Memory {
 public:
  int64_t live = 0;  // bytes
  bool host() const override { return false; }
  std::byte* allocate(int64_t bytes) override {
    live += bytes;
    std::byte* at = host_memory().allocate(bytes);
    zero(at, bytes);
    return at;
  }
  void release(std::byte* at, int64_t bytes) override { live -= bytes, host_memory().release(at, bytes); }
  void zero(std::byte* at, int64_t bytes) override { std::memset(at, 0xff, static_cast<size_t>(bytes)); }
  void copy(std::byte* to, const std::byte* from, int64_t bytes) override { std::memcpy(to, from, static_cast<size_t>(bytes)); }
  void upload(std::byte* to, const std::byte* from, int64_t bytes) override {
    for (int64_t i = 0; i < bytes; ++i) to[i] = ~from[i];
  }
  void download(std::byte* to, const std::byte* from, int64_t bytes) override { upload(to, from, bytes); }
};

TEST(Memory, TensorsAreCopiedBetweenTheHostAndAnother) {
  FarMemory far;
  {
    const Tensor here({2, 3}, DType::f32), there({6}, DType::f32, far), second({6}, DType::f32, far);
    EXPECT_THAT(there.to_doubles(), ElementsAre(0, 0, 0, 0, 0, 0));
    here.from_doubles(std::vector<double>{1, 2, 3, 4, 5, 6});
    there.copy_from(here);
    EXPECT_THAT(there.to_doubles(), ElementsAre(1, 2, 3, 4, 5, 6));
    second.from_doubles(std::vector<double>{9, 8, 7, 6, 5, 4});
    there.swap_elements(second);
    EXPECT_THAT(there.slice(2, {2}).to_doubles(), ElementsAre(7, 6));
    EXPECT_THAT(second.clone().to_doubles(), ElementsAre(1, 2, 3, 4, 5, 6));
    here.copy_from(there);
    EXPECT_THAT(here.to_doubles(), ElementsAre(9, 8, 7, 6, 5, 4));
    const std::vector<std::byte> bytes = there.download();
    EXPECT_EQ(std::memcmp(bytes.data(), here.raw(), bytes.size()), 0);
    second.upload(bytes);
    EXPECT_EQ(second.to_doubles(), here.to_doubles());
    there.rows(1, 3).zero();
    EXPECT_THAT(there.to_doubles(), ElementsAre(9, 0, 0, 6, 5, 4));
    EXPECT_EQ(far.live, 48);
  }
  EXPECT_EQ(far.live, 0);
}

TEST(Memory, TheHostReachesNoElementsElsewhere) {
  FarMemory far, farther;
  const Tensor there({4}, DType::f32, far), nowhere({4}, DType::f32, meta_memory());
  EXPECT_THROW(there.data<float>(), Error);
  EXPECT_THROW(nowhere.data<float>(), Error);
  EXPECT_THROW(there.copy_from(Tensor({4}, DType::f32, farther)), Error) << "neither is the host's";
  EXPECT_THROW(there.copy_from(Tensor({3}, DType::f32)), Error);
  EXPECT_THROW(there.copy_from(Tensor({4}, DType::f64)), Error);
}

TEST(Memory, TensorsWithoutElementsStandForTheirSizes) {
  const Tensor x({int64_t{1} << 40}, DType::f32, meta_memory());
  EXPECT_TRUE(x);
  EXPECT_FALSE(x.has_elements());
  EXPECT_EQ(x.bytes(), int64_t{4} << 40);
  const Tensor part = x.slice(int64_t{1} << 39, {2, 3});
  EXPECT_FALSE(part.has_elements());
  EXPECT_EQ(&part.memory(), &meta_memory());
  part.zero();
  part.clone().copy_from(part);
  const Tensor here({2, 3}, DType::f32);
  part.copy_from(here);
  Arena arena(meta_memory());
  EXPECT_EQ(arena.allocate({int64_t{1} << 40}, DType::f64).bytes(), int64_t{8} << 40);
  EXPECT_FALSE(Tensor());
}

// Zeros in their place would pass for a loss of 0.
TEST(Memory, WhatHasNoElementsIsNotRead) {
  const Tensor x({2, 3}, DType::f32, meta_memory()), here({2, 3}, DType::f32);
  std::vector<float> numbers(6);
  const auto refused = testing::ThrowsMessage<InternalError>(testing::HasSubstr("the host reads 24 bytes of a tensor without elements"));
  EXPECT_THAT([&] { x.read<float>(numbers); }, refused);
  EXPECT_THAT([&] { x.to_doubles(); }, refused);
  EXPECT_THAT([&] { x.download(); }, refused);
  EXPECT_THAT([&] { here.copy_from(x); }, refused);
}

TEST(Memory, LargeTensorsAreSwappedInPieces) {
  const int64_t n = (int64_t{1} << 18) + 5;
  const Tensor a({n}, DType::f32), b({n}, DType::f32);
  for (int64_t i = 0; i < n; ++i) a.data<float>()[i] = static_cast<float>(i), b.data<float>()[i] = -static_cast<float>(i);
  a.swap_elements(b);
  for (int64_t i = 0; i < n; ++i) ASSERT_TRUE(a.data<float>()[i] == -b.data<float>()[i] && b.data<float>()[i] == static_cast<float>(i));
}

}  // namespace
}  // namespace starling
