// Every place of a NaN or an infinity is found, in whole blocks and in what is left of one.
#include "tensor/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace starling {
namespace {

TEST(Finite, TheFirstThatIsNoNumberIsFoundWhereverItIs) {
  using Limits = std::numeric_limits<float>;
  for (const size_t n : {size_t{1}, size_t{4095}, size_t{4096}, size_t{9001}}) {
    std::vector<float> values(n, Limits::max());
    for (size_t i = 0; i < n; i += 3) values[i] = Limits::denorm_min();
    for (size_t i = 1; i < n; i += 5) values[i] = Limits::lowest();
    EXPECT_EQ(first_not_finite(values), -1) << n;
    for (const float bad : {Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::signaling_NaN(), Limits::infinity(), -Limits::infinity()})
      for (const size_t at : {size_t{0}, n / 2, n - 1}) {
        std::vector<float> damaged = values;
        damaged[at] = damaged[n - 1] = bad;
        EXPECT_EQ(first_not_finite(damaged), static_cast<int64_t>(at)) << n << " " << bad;
      }
  }
  EXPECT_EQ(first_not_finite({}), -1);
}

}  // namespace
}  // namespace starling
