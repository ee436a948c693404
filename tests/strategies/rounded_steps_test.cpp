#include "strategies/rounded_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "strategies/steps.h"

namespace starling {
namespace {

// To 8 bits of mantissa, to the nearest, by arithmetic on the number.
float nearest_bf16(float x) {
  if (x == 0) return 0;
  const float unit = std::exp2(static_cast<float>(std::ilogb(x) - 7));
  return std::nearbyint(x / unit) * unit;
}

std::vector<float> numbers(int64_t n, uint32_t seed, float deviation) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = normal(random);
  return x;
}

// The owner of two ranges steps, and adds what it sends: the parameters there have moved by the rounded steps, the others not at all; and
// whoever gets the steps adds the same numbers.
TEST(RoundedSteps, OwnerAndOthersAddTheSameRoundedSteps) {
  constexpr int64_t n = 1000;
  const std::vector<Range> own = {{100, 300}, {640, 704}};
  const std::vector<float> start = numbers(n, 1, 0.1F), moves = numbers(n, 2, 1e-3F);
  const auto flat = make_host_flat_ops(1);
  const Tensor values({n}, DType::f32), others({n}, DType::f32);
  for (const Tensor& t : {values, others}) std::copy(start.begin(), start.end(), t.data<float>());

  RoundedSteps steps(*flat, values, own, 200);
  steps.remember();
  for (const Range& r : own)
    for (int64_t i = r.begin; i < r.end; ++i) values.data<float>()[i] += moves[static_cast<size_t>(i)];
  std::vector<float> stepped(values.data<float>(), values.data<float>() + n);
  for (const Range& r : {Range{100, 150}, Range{150, 300}, Range{640, 704}}) steps.make(r);  // pieces of them, too
  for (int64_t i = 0; i < n; ++i) EXPECT_EQ(values.data<float>()[i], start[static_cast<size_t>(i)]) << i;

  RoundedSteps other(*flat, others, {}, 200);
  other.wire().copy_from(steps.wire());
  for (const Range& r : own) steps.add(r), other.add(r);
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    const bool mine = (i >= 100 && i < 300) || (i >= 640 && i < 704);
    EXPECT_EQ(values.data<float>()[i], start[at] + (mine ? nearest_bf16(stepped[at] - start[at]) : 0.0F)) << i;
    EXPECT_EQ(others.data<float>()[i], values.data<float>()[i]) << i;
  }
}

}  // namespace
}  // namespace starling
