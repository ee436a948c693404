#include "measure/calibration.h"

#include <gtest/gtest.h>

namespace starling {
namespace {

// Eight passes over all batches take at most twice the seconds, unless even the fewest tokens take longer.
TEST(Calibration, ASlowMachineMeasuresFewerAndSmallerBatches) {
  const struct {
    double seconds_per_token;
    int64_t count, tokens;
  } cases[] = {{1e-6, 4, 4000}, {6e-5, 3, 4000}, {1e-4, 1, 4000}, {2e-4, 1, 3750}, {1e-3, 1, 750}, {1e-2, 1, 512}, {10, 1, 512}};
  for (const auto& [per_token, count, tokens] : cases) {
    const MeasuredBatches b = batches_to_measure(4000, 3, per_token);
    EXPECT_EQ(b.count, count) << per_token;
    EXPECT_EQ(b.tokens, tokens) << per_token;
    if (tokens > 512) {
      EXPECT_LE(8 * static_cast<double>(b.count * b.tokens) * per_token, 6 + 1e-9) << per_token;
    }
  }
  EXPECT_EQ(batches_to_measure(200, 3, 10).tokens, 200) << "never more than the batch";
}

}  // namespace
}  // namespace starling
