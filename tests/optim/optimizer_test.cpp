// Schedules against their closed forms; Adam against its equations written out in double precision.
#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

namespace starling {
namespace {

TEST(LearningRate, WarmsUpLinearlyThenFollowsItsSchedule) {
  OptimizerOptions o;
  o.learning_rate = 0.002, o.warmup = 100;
  EXPECT_DOUBLE_EQ(learning_rate(o, 1, 1000), 0.00002);
  EXPECT_DOUBLE_EQ(learning_rate(o, 50, 1000), 0.001);
  EXPECT_DOUBLE_EQ(learning_rate(o, 100, 1000), 0.002);
  EXPECT_DOUBLE_EQ(learning_rate(o, 400, 1000), 0.001);  // sqrt(100 / 400) = 1/2
  o.schedule = "constant";
  EXPECT_DOUBLE_EQ(learning_rate(o, 999, 1000), 0.002);
  o.schedule = "step", o.decay_every = 200, o.decay_factor = 0.5;
  EXPECT_DOUBLE_EQ(learning_rate(o, 299, 1000), 0.002);
  EXPECT_DOUBLE_EQ(learning_rate(o, 300, 1000), 0.001);
  EXPECT_DOUBLE_EQ(learning_rate(o, 500, 1000), 0.0005);
  o.schedule = "cosine", o.final_rate = 0.1;
  EXPECT_NEAR(learning_rate(o, 550, 1000), 0.002 * (0.1 + 0.9 * 0.5), 1e-12);
  EXPECT_NEAR(learning_rate(o, 1000, 1000), 0.0002, 1e-12);
  EXPECT_NEAR(learning_rate(o, 5000, 1000), 0.0002, 1e-12);
}

TEST(LearningRate, WithoutWarmupStartsAtThePeak) {
  OptimizerOptions o;
  o.warmup = 0;
  for (const char* schedule : {"constant", "cosine", "step", "inverse-sqrt"}) {
    o.schedule = schedule;
    EXPECT_NEAR(learning_rate(o, 1, 1000000), o.learning_rate, 1e-6) << schedule;
  }
}

class AdamTest : public testing::TestWithParam<const char*> {};

TEST_P(AdamTest, FollowsItsEquationsAndUpdatesOnlyItsRange) {
  const auto backend = make_backend("cpu:f32", 2);
  OptimizerOptions o;
  o.optimizer = GetParam(), o.weight_decay = 0.1, o.epsilon = 1e-8;
  constexpr int64_t n = 40;
  const Tensor x({n}, DType::f32), g({n}, DType::f32);
  std::vector<double> value(n), m(n, 0.0), v(n, 0.0);
  for (int64_t i = 0; i < n; ++i) value[i] = static_cast<float>(std::sin(static_cast<double>(i)));
  x.from_doubles(value);
  Optimizer optimizer(*backend, o, n);
  for (int t = 1; t <= 5; ++t) {
    std::vector<double> gradient(n);
    for (int64_t i = 0; i < n; ++i) gradient[i] = static_cast<float>(std::cos(static_cast<double>(i * t)));
    g.from_doubles(gradient);
    optimizer.begin_update();
    optimizer.update(x, g, 0, 16, 0.5, 0.01);
    optimizer.update(x, g, 16, 32, 0.5, 0.01);
    for (int64_t i = 0; i < 32; ++i) {
      const bool decoupled = o.optimizer == "adamw";
      const double d = 0.5 * gradient[i] + (decoupled ? 0 : 0.1 * value[i]);
      m[i] = 0.9 * m[i] + 0.1 * d, v[i] = 0.98 * v[i] + 0.02 * d * d;
      const double step = (m[i] / (1 - std::pow(0.9, t))) / (std::sqrt(v[i] / (1 - std::pow(0.98, t))) + 1e-8);
      value[i] -= 0.01 * (step + (decoupled ? 0.1 * value[i] : 0));
    }
  }
  const std::vector<double> result = x.to_doubles();
  for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(result[i], value[i], 2e-6) << i;
}

INSTANTIATE_TEST_SUITE_P(Kinds, AdamTest, testing::Values("adam", "adamw"));

}  // namespace
}  // namespace starling
