// Which losses are those of runs that learn, diverge or stall.
#include "guard/loss_watch.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <random>

namespace starling {
namespace {

using testing::HasSubstr;

struct Outcome {
  Learning how = Learning::well;
  int64_t step = 0;  // of the first verdict that is not well
};
// The first verdict on a loss that is a function of the update, with noise of this deviation.
Outcome first_of(LossWatch watch, int64_t updates, double noise, uint64_t seed, const std::function<double(int64_t)>& loss) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, noise);
  for (int64_t step = 1; step <= updates; ++step)
    if (const Learning how = watch.add(step, loss(step) + normal(random), 1); how != Learning::well) return {how, step};
  return {};
}
double falling(int64_t step) { return 1.5 + 7 * std::exp(-static_cast<double>(step) / 200); }

TEST(LossWatch, LossesThatFallAreWellHoweverNoisy) {
  for (const double noise : {0.01, 0.1, 0.3, 0.6})
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const Outcome o = first_of(LossWatch(6, 100), 5000, noise, seed, falling);
      EXPECT_EQ(o.how, Learning::well) << noise << " " << seed << " at " << o.step;
    }
}

// A constant loss of a model that has long learned, and one that overfits slowly, are well too.
TEST(LossWatch, FlatLossesBelowTheFloorAreWell) {
  EXPECT_EQ(first_of(LossWatch(6, 0), 3000, 0.2, 1, [](int64_t) { return 3.0; }).how, Learning::well);
  EXPECT_EQ(first_of(LossWatch(6, 0), 3000, 0.02, 1, [](int64_t s) { return 0.1 + 1e-4 * static_cast<double>(s); }).how, Learning::well);
}

TEST(LossWatch, ARiseIsNoticedWithinAFewUpdates) {
  for (const double noise : {0.02, 0.1, 0.2})
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const Outcome jump = first_of(LossWatch(6, 0), 1000, noise, seed, [](int64_t s) { return s < 500 ? falling(s) : falling(s) + 4; });
      EXPECT_EQ(jump.how, Learning::diverging);
      EXPECT_GE(jump.step, 500);
      EXPECT_LE(jump.step, 510) << noise;
      const Outcome climb = first_of(LossWatch(6, 0), 1000, noise, seed,
                                     [](int64_t s) { return s < 500 ? falling(s) : falling(500) + 0.05 * double(s - 500); });
      EXPECT_EQ(climb.how, Learning::diverging);
      EXPECT_LE(climb.step, 560) << noise;
    }
}

// One bad batch is none of its business.
TEST(LossWatch, ASinglePeakIsForgiven) {
  EXPECT_EQ(first_of(LossWatch(6, 0), 1000, 0.1, 1, [](int64_t s) { return s == 500 ? 5.0 : falling(s); }).how, Learning::well);
}

TEST(LossWatch, ALossAtTheEntropyOfTheTokensIsStalled) {
  const auto at = [](double level) { return [level](int64_t s) { return level + 3 * std::exp(-static_cast<double>(s) / 20); }; };
  const Outcome stalled = first_of(LossWatch(6, 100), 1000, 0.05, 1, at(6.02));
  EXPECT_EQ(stalled.how, Learning::stalled);
  EXPECT_GE(stalled.step, 300);
  EXPECT_LE(stalled.step, 420);
  EXPECT_GE(first_of(LossWatch(6, 800), 1000, 0.05, 1, at(6.02)).step, 900) << "within the warm-up nothing is expected";
  EXPECT_EQ(first_of(LossWatch(6, 100), 1000, 0.05, 1, at(5.5)).how, Learning::well);
  EXPECT_EQ(first_of(LossWatch(0, 100), 1000, 0.05, 1, at(6.02)).how, Learning::well) << "without a known entropy";
  // Slowly, but it learns.
  EXPECT_EQ(first_of(LossWatch(6, 100), 3000, 0.02, 1, [](int64_t s) { return 6.5 - 1e-3 * double(s); }).how, Learning::well);
}

TEST(LossWatch, SaysWhatItSaw) {
  LossWatch watch;
  for (int step = 1; step <= 100; ++step) watch.add(step, 2, 0.5);
  EXPECT_TRUE(watch.calm());
  EXPECT_TRUE(watch.far_above(2.6));
  EXPECT_FALSE(watch.far_above(2.4));
  watch.add(101, 10, 4);
  EXPECT_FALSE(watch.calm());
  EXPECT_THAT(watch.text(), HasSubstr("loss 3 (2 at update 1), gradient norm 4 (usually 0.5"));
}

TEST(LossWatch, ComesBackAsItWas) {
  LossWatch watch(6, 10), other(6, 10);
  for (int step = 1; step <= 400; ++step) watch.add(step, falling(step) + 0.1 * (step % 3), 1 + step % 5);
  State state;
  watch.save(state);
  other.restore(State::from_json(state.to_json(), "test"));
  for (int step = 401; step <= 500; ++step) {
    const double loss = falling(step) + (step > 450 ? 0.06 * (step - 450) : 0);
    EXPECT_EQ(watch.add(step, loss, 1), other.add(step, loss, 1));
    EXPECT_EQ(watch.text(), other.text());
  }
}

}  // namespace
}  // namespace starling
