// Schedules against their closed forms; Adam and SGD against their equations written out in double precision.
#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backend/profiled.h"

namespace starling {
namespace {

TEST(LearningRate, WarmsUpLinearlyThenFollowsItsSchedule) {
  OptimizerOptions o;
  o.learning_rate = 0.002, o.warmup = 100;
  EXPECT_DOUBLE_EQ(learning_rate(o, 1, 1000), 0.00002);
  EXPECT_DOUBLE_EQ(learning_rate(o, 50, 1000), 0.001);
  EXPECT_DOUBLE_EQ(learning_rate(o, 100, 1000), 0.002);
  EXPECT_DOUBLE_EQ(learning_rate(o, 400, 1000), 0.001);  // sqrt(100 / 400) = 1/2
  o.schedule = RateSchedule::constant;
  EXPECT_DOUBLE_EQ(learning_rate(o, 999, 1000), 0.002);
  o.schedule = RateSchedule::step, o.decay_every = 200, o.decay_factor = 0.5;
  EXPECT_DOUBLE_EQ(learning_rate(o, 299, 1000), 0.002);
  EXPECT_DOUBLE_EQ(learning_rate(o, 300, 1000), 0.001);
  EXPECT_DOUBLE_EQ(learning_rate(o, 500, 1000), 0.0005);
  o.schedule = RateSchedule::cosine, o.final_rate = 0.1;
  EXPECT_NEAR(learning_rate(o, 550, 1000), 0.002 * (0.1 + 0.9 * 0.5), 1e-12);
  EXPECT_NEAR(learning_rate(o, 1000, 1000), 0.0002, 1e-12);
  EXPECT_NEAR(learning_rate(o, 5000, 1000), 0.0002, 1e-12);
}

TEST(LearningRate, EndsWhereTheRunDoes) {
  OptimizerOptions o;
  o.learning_rate = 0.002, o.warmup = 100, o.schedule = RateSchedule::linear;
  EXPECT_DOUBLE_EQ(learning_rate(o, 100, 1100), 0.002);
  EXPECT_NEAR(learning_rate(o, 350, 1100), 0.0015, 1e-15);
  EXPECT_EQ(learning_rate(o, 1100, 1100), 0);
  EXPECT_EQ(learning_rate(o, 1200, 1100), 0);
  EXPECT_NEAR(learning_rate(o, 200, 300.0), 0.001, 1e-15);  // another end, another rate
  o.final_rate = 0.2;
  EXPECT_NEAR(learning_rate(o, 600, 1100), 0.002 * 0.6, 1e-15);
  EXPECT_NEAR(learning_rate(o, 2000, 1100), 0.0004, 1e-15);
  o.schedule = RateSchedule::wsd, o.final_rate = 0, o.decay_share = 0.25;
  EXPECT_DOUBLE_EQ(learning_rate(o, 50, 1000), 0.001);
  EXPECT_DOUBLE_EQ(learning_rate(o, 750, 1000), 0.002);
  EXPECT_NEAR(learning_rate(o, 875, 1000), 0.001, 1e-15);
  EXPECT_EQ(learning_rate(o, 1000, 1000), 0);
  o.decay_share = 1;  // as linear: it does not fall within the warm-up
  EXPECT_DOUBLE_EQ(learning_rate(o, 100, 1100), 0.002);
  EXPECT_NEAR(learning_rate(o, 600, 1100), 0.001, 1e-15);
  o.decay_share = 0;
  EXPECT_DOUBLE_EQ(learning_rate(o, 999, 1000), 0.002);
  // A run that is shorter than its warm-up.
  for (const RateSchedule schedule : {RateSchedule::linear, RateSchedule::cosine, RateSchedule::wsd}) {
    o.schedule = schedule;
    EXPECT_DOUBLE_EQ(learning_rate(o, 50, 60), 0.001);
  }
}

TEST(LearningRate, WithoutWarmupStartsAtThePeak) {
  OptimizerOptions o;
  o.warmup = 0;
  for (const char* schedule : {"constant", "linear", "cosine", "wsd", "step", "inverse-sqrt"}) {
    o.schedule = from_word<RateSchedule>(schedule);
    EXPECT_NEAR(learning_rate(o, 1, 1000000), o.learning_rate, 1e-6) << schedule;
  }
}

TEST(LearningRate, SgdAfterAdamHasARateOfItsOwnThatIsHalvedOnSchedule) {
  OptimizerOptions o;
  o.learning_rate = 0.002, o.warmup = 10, o.schedule = RateSchedule::constant, o.clip_norm = 1;
  o.sgd_after = 60, o.sgd_learning_rate = 0.5, o.sgd_clip_norm = 5;
  EXPECT_FALSE(is_sgd(o, 60));
  EXPECT_TRUE(is_sgd(o, 61));
  EXPECT_EQ(clip_norm(o, 60), 1);
  EXPECT_EQ(clip_norm(o, 61), 5);
  EXPECT_DOUBLE_EQ(learning_rate(o, 60, 1000), 0.002);
  for (const int64_t step : {61, 500, 1000000}) EXPECT_EQ(learning_rate(o, step, 1000), 0.5) << step;  // never halved
  o.sgd_halve_every = 20, o.sgd_halve_after = 100;  // updates 61 to 160 at the full rate, 161 to 180 at half of it
  EXPECT_EQ(learning_rate(o, 160, 1000), 0.5);
  EXPECT_EQ(learning_rate(o, 161, 1000), 0.25);
  EXPECT_EQ(learning_rate(o, 180, 1000), 0.25);
  EXPECT_EQ(learning_rate(o, 181, 1000), 0.125);
  EXPECT_EQ(learning_rate(o, 241, 1000), 0.5 / 32);
  o.sgd_halve_after = 0;
  EXPECT_EQ(learning_rate(o, 80, 1000), 0.5);
  EXPECT_EQ(learning_rate(o, 81, 1000), 0.25);
  o.optimizer = OptimizerKind::sgd, o.sgd_after = 0;  // SGD alone has the usual schedule and clipping
  EXPECT_TRUE(is_sgd(o, 1));
  EXPECT_EQ(clip_norm(o, 100), 1);
  EXPECT_DOUBLE_EQ(learning_rate(o, 5, 1000), 0.001);
}

class AdamTest : public testing::TestWithParam<const char*> {};

TEST_P(AdamTest, FollowsItsEquationsAndUpdatesOnlyItsRange) {
  const auto backend = make_backend("cpu:f32", 2);
  OptimizerOptions o;
  o.optimizer = from_word<OptimizerKind>(GetParam()), o.weight_decay = 0.1, o.epsilon = 1e-8;
  constexpr int64_t n = 40;
  const Tensor x({n}, DType::f32, backend->memory()), g({n}, DType::f32, backend->memory());
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
      const bool decoupled = o.optimizer == OptimizerKind::adamw;
      const double d = 0.5 * gradient[i] + (decoupled ? 0 : 0.1 * value[i]);
      m[i] = 0.9 * m[i] + 0.1 * d, v[i] = 0.98 * v[i] + 0.02 * d * d;
      const double step = (m[i] / (1 - std::pow(0.9, t))) / (std::sqrt(v[i] / (1 - std::pow(0.98, t))) + 1e-8);
      value[i] -= 0.01 * (step + (decoupled ? 0.1 * value[i] : 0));
    }
  }
  const std::vector<double> result = x.to_doubles();
  for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(result[i], value[i], 2e-6) << i;
}

// Three updates of Adam, then two of SGD, over a shard made of two ranges.
TEST(Sgd, FollowsAdamByItsEquationAndLeavesTheMomentsAlone) {
  const auto backend = make_backend("reference", 1);
  OptimizerOptions o;
  o.sgd_after = 3, o.weight_decay = 0.1;
  constexpr int64_t n = 24;
  const Tensor x({n}, DType::f64, backend->memory()), g({n}, DType::f64, backend->memory());
  std::vector<double> value(n), gradient(n);
  for (int64_t i = 0; i < n; ++i) value[i] = std::sin(static_cast<double>(i)), gradient[i] = std::cos(static_cast<double>(3 * i));
  x.from_doubles(value), g.from_doubles(gradient);
  Optimizer optimizer(*backend, o, {{0, 8}, {16, 24}});
  const auto update = [&] {
    optimizer.begin_update();
    for (const int64_t begin : {0, 16}) optimizer.update(x, g, begin, begin + 8, 0.5, 0.01);
  };
  for (int t = 0; t < 3; ++t) update();
  EXPECT_EQ(optimizer.elements_moved(), 3);
  const std::vector<double> before = x.to_doubles(), moments = optimizer.state()[1].second.to_doubles();
  update();
  update();
  const std::vector<double> after = x.to_doubles();
  for (int64_t i = 0; i < n; ++i) {
    double expected = before[i];
    if (i < 8 || i >= 16)
      for (int t = 0; t < 2; ++t) expected -= 0.01 * (0.5 * gradient[i] + 0.1 * expected);
    EXPECT_NEAR(after[i], expected, 1e-15) << i;
  }
  EXPECT_EQ(optimizer.state()[1].second.to_doubles(), moments);
}

TEST(Sgd, AloneKeepsNoState) {
  const auto backend = make_backend("reference", 1);
  OptimizerOptions o;
  o.optimizer = OptimizerKind::sgd;
  const Tensor x({2}, DType::f64, backend->memory()), g({2}, DType::f64, backend->memory());
  x.from_doubles(std::vector<double>{1, -2}), g.from_doubles(std::vector<double>{0.5, 4});
  Optimizer optimizer(*backend, o, 2);
  EXPECT_TRUE(optimizer.state().empty());
  optimizer.begin_update();
  optimizer.update(x, g, 0.25, 0.1);
  EXPECT_DOUBLE_EQ(x.to_doubles()[0], 1 - 0.1 * 0.125);
  EXPECT_DOUBLE_EQ(x.to_doubles()[1], -2 - 0.1);
}

TEST(Adagrad, DividesByTheRootOfAllSquaresSoFar) {
  for (const char* backend_name : {"reference", "cpu:f32"}) {
    const auto backend = make_backend(backend_name, 2);
    OptimizerOptions o;
    o.optimizer = OptimizerKind::adagrad, o.weight_decay = 0.1, o.epsilon = 1e-8;
    constexpr int64_t n = 40;
    const Tensor x({n}, backend->parameter(), backend->memory()), g({n}, backend->parameter(), backend->memory());
    std::vector<double> value(n), squares(n, 0.0);
    for (int64_t i = 0; i < n; ++i) value[i] = static_cast<float>(std::sin(static_cast<double>(i)));
    x.from_doubles(value);
    Optimizer optimizer(*backend, o, {{8, 24}});
    for (int t = 1; t <= 5; ++t) {
      std::vector<double> gradient(n);
      for (int64_t i = 0; i < n; ++i) gradient[i] = static_cast<float>(std::cos(static_cast<double>(i * t)));
      g.from_doubles(gradient);
      optimizer.begin_update();
      // A part as such is the same as a part of the whole.
      optimizer.update(x, g, 8, 16, 0.5, 0.01);
      optimizer.update_part(x.slice(16, Shape{8}), g.slice(16, Shape{8}), 16, 0.5, 0.01);
      for (int64_t i = 8; i < 24; ++i) {
        const double d = 0.5 * gradient[i] + 0.1 * value[i];
        squares[i] += d * d;
        value[i] -= 0.01 * d / (std::sqrt(squares[i]) + 1e-8);
      }
    }
    const double tolerance = backend->parameter() == DType::f64 ? 1e-14 : 2e-6;
    const std::vector<double> result = x.to_doubles();
    for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(result[i], value[i], tolerance) << backend_name << " " << i;
    ASSERT_EQ(optimizer.state().size(), 1u);
    EXPECT_NEAR(optimizer.state()[0].second.to_doubles()[3], squares[11], tolerance);
    EXPECT_EQ(optimizer.elements_moved(), 5);
  }
}

// A server that takes several steps for one update of the run changes to SGD when the run does.
TEST(Sgd, FollowsTheUpdatesOfTheRunWhereThoseAreCountedApart) {
  const auto backend = make_backend("reference", 1);
  OptimizerOptions o;
  o.sgd_after = 2;
  const Tensor x({1}, DType::f64, backend->memory()), g({1}, DType::f64, backend->memory());
  g.from_doubles(std::vector<double>{1});
  Optimizer optimizer(*backend, o, 1);
  for (const int64_t of_the_run : {1, 1, 2, 2, 3}) {
    const double before = x.to_doubles()[0];
    optimizer.begin_update(of_the_run);
    optimizer.update(x, g, 4, 0.01);
    EXPECT_NEAR(before - x.to_doubles()[0], of_the_run < 3 ? 0.01 : 0.04, 1e-8);  // Adam's step does not depend on the scale
  }
  EXPECT_EQ(optimizer.updates(), 5);
}

// What the traits say of an optimizer, beside the tensors that its step is given.
TEST(OptimizerTraits, SayWhatAStepReadsAndWrites) {
  const auto cpu = make_backend("cpu:f32", 1);
  for (const std::string name : words(OptimizerKind{})) {
    ProfiledBackend backend(*cpu);
    OptimizerOptions o;
    o.optimizer = from_word<OptimizerKind>(name);
    constexpr int64_t n = 1000;
    const Tensor x({n}, DType::f32, backend.memory()), g({n}, DType::f32, backend.memory());
    Optimizer optimizer(backend, o, n);
    EXPECT_EQ(optimizer.state().size(), static_cast<size_t>(traits_of(o.optimizer).states())) << name;
    optimizer.begin_update();
    optimizer.update(x, g, 1, 0.01);
    ASSERT_EQ(backend.times.size(), 1u) << name;
    EXPECT_EQ(backend.times.begin()->second.bytes, traits_of(o.optimizer).elements_moved() * static_cast<double>(n * 4)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, AdamTest, testing::Values("adam", "adamw"));

}  // namespace
}  // namespace starling
