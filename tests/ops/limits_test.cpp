// What the yardsticks of benchmarks are made of.
#include "backend/limits.h"

#include <gtest/gtest.h>

namespace starling {
namespace {

TEST(Limits, ProductsOfManyRowsAreTimedAsThoseOfFew) {
  std::map<ProductShape, int64_t> calls;
  double rows = 0;
  int64_t count = 0;
  for (int64_t m = 1; m <= 500; ++m)
    for (const int64_t width : {32, 64}) {
      calls[{ProductKind::linear, m, width, 128, false}] = 1 + m % 3;
      count += 1 + m % 3;
      rows += static_cast<double>(m * (1 + m % 3));
    }
  const auto few = with_few_rows(calls);
  EXPECT_GE(few.size(), 40u);
  EXPECT_LE(few.size(), 66u);
  double few_rows = 0;
  int64_t few_count = 0;
  for (const auto& [shape, n] : few) {
    few_count += n;
    few_rows += static_cast<double>(shape.m * n);
    EXPECT_LE(n, count / 2 / 25) << shape.m << ": groups are about as large";
  }
  EXPECT_EQ(few_count, count);
  EXPECT_NEAR(few_rows, rows, 0.01 * rows);
  const std::map<ProductShape, int64_t> two{{{ProductKind::linear, 3, 32, 128, false}, 5}, {{ProductKind::linear, 4, 32, 128, false}, 6}};
  EXPECT_EQ(with_few_rows(two), two);
}

}  // namespace
}  // namespace starling
