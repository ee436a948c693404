// The computed permutation is one, for every size, and looks like chance.
#include "data/permutation.h"

#include <gtest/gtest.h>

#include <vector>

namespace starling {
namespace {

void expect_bijective(uint64_t n, uint64_t seed) {
  const Permutation permutation(n, seed, 3, 4);
  std::vector<bool> seen(n, false);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t image = permutation(i);
    ASSERT_LT(image, n);
    ASSERT_FALSE(seen[image]) << "n = " << n << ", " << i << " -> " << image;
    seen[image] = true;
  }
}

TEST(Permutation, IsBijective) {
  for (uint64_t n = 1; n <= 1000; ++n) expect_bijective(n, n);
  for (const uint64_t n : {uint64_t{65535}, uint64_t{65536}, uint64_t{65537}, uint64_t{3'000'001}}) expect_bijective(n, 1);
}

TEST(Permutation, StaysInsideAHugeRange) {
  const uint64_t n = (uint64_t{1} << 41) + 12345;
  const Permutation permutation(n, 1, 0, 0);
  for (uint64_t i = 0; i < 10000; ++i) EXPECT_LT(permutation(i * (n / 10000)), n);
}

TEST(Permutation, DependsOnSeedStreamAndEpoch) {
  const uint64_t n = 1000;
  const Permutation base(n, 1, 2, 3);
  const Permutation others[] = {{n, 2, 2, 3}, {n, 1, 3, 3}, {n, 1, 2, 4}, {n, 1, 2, 3 + (uint64_t{1} << 32)}};
  for (const Permutation& other : others) {
    int equal = 0;
    for (uint64_t i = 0; i < n; ++i) equal += base(i) == other(i);
    EXPECT_LT(equal, 10);  // 1 is expected
  }
  const Permutation same(n, 1, 2, 3);
  for (uint64_t i = 0; i < n; ++i) EXPECT_EQ(base(i), same(i));
}

TEST(Permutation, SpreadsEveryPlace) {
  // Over 4000 seeds, place 0 of 8 must go to each value about 500 times (standard deviation 21).
  std::vector<int> count(8, 0);
  for (uint64_t seed = 0; seed < 4000; ++seed) ++count[Permutation(8, seed, 0, 0)(0)];
  for (const int c : count) EXPECT_NEAR(c, 500, 105);
}

}  // namespace
}  // namespace starling
