// What the guard does with runs that are made up: parameters are a single number, the distance from the best model.
#include "guard/guard.h"

#include <gmock/gmock.h>

#include <cmath>
#include <optional>
#include <vector>

#include "base/error.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The loss is 1 + the distance. It falls in each update, unless the rate is too high or the batch is poisoned: then it grows.
struct ToyRun {
  GuardConfig config{.mode = GuardMode::act};
  double floor = 0, too_high = 1e9, rate = 1;
  std::function<bool(int64_t)> poisoned = [](int64_t) { return false; };

  double distance = 5, kept = 0;
  int64_t step = 0, batch = 0, kept_step = 0, returns = 0;
  std::vector<std::string> said;
  std::optional<Guard> guard;

  void start() {
    guard.emplace(config, LossWatch(floor, 0),
                  Guard::Run{[this] {
                               kept = distance;
                               kept_step = step;
                             },
                             [this] {
                               distance = kept;
                               step = kept_step;
                               ++returns;
                             }});
    guard->begin(0);
  }
  void update() {
    const bool bad = poisoned(batch++);
    const double loss = 1 + distance + (bad ? 4 : 0) + 0.01 * static_cast<double>(batch % 5);
    const double now = rate * guard->rate_factor(step + 1);
    if (now > too_high)
      distance = std::min(8.0, distance + 0.3);
    else
      distance = bad ? std::min(8.0, distance + 0.5) : distance * (1 - 0.01 * now / rate);
    const Guard::Verdict v = guard->updated(++step, loss, 1);
    if (!v.text.empty()) said.push_back(v.text);
  }
  void train(int64_t to) {
    while (step < to && batch < 100'000) update();
  }
};

TEST(Guard, LeavesAHealthyRunAlone) {
  ToyRun run;
  run.start();
  run.train(2000);
  EXPECT_EQ(run.batch, 2000);
  EXPECT_EQ(run.returns, 0);
  EXPECT_TRUE(run.said.empty());
  EXPECT_EQ(run.guard->rate_factor(5), 1);
}

// Batches 700 to 759 are poisoned. The run goes back once for the loss, and once for each batch that is at fault; its rate stays.
TEST(Guard, SkipsARangeOfPoisonedData) {
  ToyRun run, healthy;
  run.poisoned = [](int64_t batch) { return batch >= 700 && batch < 760; };
  run.start();
  healthy.start();
  run.train(2000);
  healthy.train(2000);
  EXPECT_EQ(run.guard->rescues(), 1);
  EXPECT_EQ(run.guard->rate_factor(2000), 1);
  EXPECT_GE(run.returns, 40);
  EXPECT_LE(run.returns, 60);
  EXPECT_DOUBLE_EQ(run.distance, healthy.distance);
  EXPECT_THAT(run.said.front(), HasSubstr("the run goes back from update 70"));
  EXPECT_THAT(run.said.front(), HasSubstr("to update 700, with the same learning rate and the batches that follow (rescue 1 of 8)"));
  EXPECT_THAT(run.said[1], HasSubstr("batch skipped (1 in a row)"));
  EXPECT_LE(run.said.size(), 4u);
}

TEST(Guard, LowersARateThatIsTooHigh) {
  ToyRun run;
  run.rate = 1, run.too_high = 0.2;
  run.start();
  run.train(3000);
  EXPECT_EQ(run.step, 3000);
  EXPECT_EQ(run.guard->rescues(), 4);  // the first one tries other data
  EXPECT_EQ(run.guard->rate_factor(3000), 0.125);
  EXPECT_LT(run.distance, 1);
  EXPECT_THAT(run.said[1], HasSubstr("with 0.5 times the learning rate, which warms up in 100 updates (rescue 2 of 8)"));
}

TEST(Guard, ARunThatStallsBeginsAgainWithALowerRate) {
  ToyRun run;
  run.floor = 5, run.distance = 4.05, run.too_high = 0.5;
  run.start();
  run.poisoned = [&run](int64_t) {  // while the rate is too high, it stays where it is
    if (run.rate * run.guard->rate_factor(run.step + 1) > run.too_high) run.distance = 3.9;
    return false;
  };
  run.train(1500);
  EXPECT_THAT(run.said.front(), HasSubstr("the run does not learn: its loss is still that of guessing by frequency"));
  EXPECT_THAT(run.said.front(), HasSubstr("to update 0, with 0.25 times the learning rate"));
  EXPECT_LT(run.distance, 1);
}

// What ends a run; "" if nothing does.
std::string end_of(ToyRun& run) {
  run.start();
  try {
    run.train(5000);
  } catch (const DivergedError& e) {
    return e.what();
  }
  return "";
}

TEST(Guard, GivesUpInTheEndAndSaysWhy) {
  ToyRun run;
  run.too_high = 0;
  run.config.most_rescues = 3;
  EXPECT_THAT(end_of(run), HasSubstr("the run has gone back 3 times already (guard.most-rescues): lower train.learning-rate"));
  ToyRun poison;
  poison.poisoned = [](int64_t batch) { return batch >= 300; };
  EXPECT_THAT(end_of(poison), HasSubstr("the loss of 500 batches in a row is far above"));
}

TEST(Guard, OnlyWarnsIfItIsNotToAct) {
  ToyRun run;
  run.config.mode = GuardMode::warn;
  run.poisoned = [](int64_t batch) { return (batch >= 500 && batch < 520) || (batch >= 1500 && batch < 1520); };
  run.start();
  run.train(2500);
  EXPECT_EQ(run.returns, 0);
  EXPECT_THAT(run.said, ElementsAre(HasSubstr("warning: the loss rises"), HasSubstr("warning: the loss rises"))) << "once for each rise";
  ToyRun off;
  off.config.mode = GuardMode::off;
  off.poisoned = run.poisoned;
  off.start();
  off.train(2500);
  EXPECT_TRUE(off.said.empty());
}

TEST(Guard, ALossThatIsNotFiniteGoesBackToo) {
  ToyRun run;
  run.start();
  run.train(350);
  const Guard::Verdict v = run.guard->not_finite(351, "the loss is NaN");
  EXPECT_TRUE(v.went_back);
  EXPECT_EQ(v.to, 300);
  EXPECT_EQ(run.step, 300);
  EXPECT_THAT(v.text, HasSubstr("guard: the loss is NaN; the run goes back from update 351 to update 300"));
  run.config.mode = GuardMode::warn;
  run.start();
  EXPECT_THROW(run.guard->not_finite(1, "the loss is NaN"), DivergedError);
}

// Saved after the update of a snapshot and restored, it decides as the one that went on.
TEST(Guard, ComesBackAsItWas) {
  ToyRun whole, resumed;
  for (ToyRun* run : {&whole, &resumed}) {
    run->too_high = 0.2;
    run->start();
    run->train(400);
    run->guard->saved(400);
  }
  State state;
  resumed.guard->save(state);
  resumed.start();
  resumed.guard->restore(State::from_json(state.to_json(), "test"));
  resumed.step = 400, resumed.guard->begin(400);
  whole.train(1500);
  resumed.train(1500);
  EXPECT_EQ(whole.distance, resumed.distance);
  EXPECT_EQ(whole.batch, resumed.batch);
  EXPECT_EQ(whole.guard->rate_factor(1500), resumed.guard->rate_factor(1500));
}

}  // namespace
}  // namespace starling
