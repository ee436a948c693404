// The generator against the published known-answer vectors of Philox4x32-10 (Random123), and rough statistics of the draws
// built on it: any change here would silently change every shuffle, dropout mask and initial weight.
#include "base/random.h"

#include <gtest/gtest.h>

#include <vector>

namespace starling {
namespace {

TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, {0, 0, 0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~uint64_t{0}, {~0u, ~0u, ~0u, ~0u}), (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // The digits of pi as counter and key, as in Random123's kat_vectors.
  EXPECT_EQ(philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, SameSeedAndStreamGiveTheSameDraws) {
  Random a(7, 3), b(7, 3), other_stream(7, 4), other_seed(8, 3);
  const uint64_t first = a.next();
  EXPECT_EQ(first, b.next());
  EXPECT_NE(first, other_stream.next());
  EXPECT_NE(first, other_seed.next());
}

TEST(Random, UniformHasTheRightMomentsAndRange) {
  Random r(1, 0);
  double sum = 0, squares = 0;
  constexpr int n = 200000;
  for (int i = 0; i < n; ++i) {
    const double u = r.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u, squares += u * u;
  }
  EXPECT_NEAR(sum / n, 0.5, 0.003);  // standard error 0.00065
  EXPECT_NEAR(squares / n, 1.0 / 3, 0.003);
}

TEST(Random, BelowIsUniformOverItsRange) {
  Random r(2, 0);
  std::vector<int> counts(10);
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) {
    const uint64_t k = r.below(10);
    ASSERT_LT(k, 10u);
    ++counts[k];
  }
  double chi2 = 0;
  for (const int c : counts) chi2 += (c - n / 10.0) * (c - n / 10.0) / (n / 10.0);
  EXPECT_LT(chi2, 27.9);  // 9 degrees of freedom, p = 0.001
  EXPECT_EQ(r.below(1), 0u);
}

TEST(Random, NormalHasUnitVariance) {
  Random r(3, 0);
  double sum = 0, squares = 0;
  constexpr int n = 200000;
  for (int i = 0; i < n; ++i) {
    const double z = r.normal();
    ASSERT_TRUE(std::isfinite(z));
    sum += z, squares += z * z;
  }
  EXPECT_NEAR(sum / n, 0.0, 0.01);
  EXPECT_NEAR(squares / n, 1.0, 0.015);
}

}  // namespace
}  // namespace starling
