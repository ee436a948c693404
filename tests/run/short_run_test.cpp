// Runs that are over before the usual distances of reports, validations and checkpoints: what they show and save, and the rate of a warm-up
// that knows how long they take.
#include <gmock/gmock.h>

#include <csignal>
#include <map>
#include <nlohmann/json.hpp>

#include "run/trainer.h"
#include "tests/run/trainer_fixture.h"

namespace starling {
namespace {

using testing::HasSubstr;

// Which somebody moves on.
class HandClock : public Clock {
 public:
  int64_t now_ns() const override { return 1'000'000'000 * moved; }
  int64_t moved = 0;
};

class ShortRun : public TrainerTest {
 protected:
  // Whose distances are left open.
  Config open_config(const std::string& run) const {
    Config c = config(run);
    c.log.every = c.valid.every = c.checkpoint.every = 0, c.checkpoint.keep = 1000, c.train.threads = 1;
    c.valid.metrics = {"cross-entropy"};
    return c;
  }
  // A second for each update, and nothing else takes time.
  static int train(const Config& c, int64_t stop_after = 0) {
    World world = make_local_world();
    auto clock = std::make_unique<HandClock>();
    TrainingWatch watch;
    watch.updated = [&, time = clock.get()](int64_t step, int64_t, int64_t) {
      ++time->moved;
      if (step == stop_after) std::raise(SIGTERM);
    };
    world.clock = std::move(clock);
    return run_training(c, world, watch);
  }
  // Updates of the records of a kind.
  std::vector<int64_t> steps(const std::string& run, const std::string& type) const {
    std::vector<int64_t> all;
    for (const nlohmann::json& event : events(run, type)) all.push_back(event.at("step"));
    return all;
  }
  std::vector<nlohmann::json> events(const std::string& run, const std::string& type) const {
    std::vector<nlohmann::json> all;
    std::ifstream in(path(run) + "/events.jsonl");
    for (std::string line; std::getline(in, line);)
      if (const auto event = nlohmann::json::parse(line); event.at("type") == type) all.push_back(event);
    return all;
  }
};

TEST_F(ShortRun, OfFewUpdatesShowsAndSavesTenTimes) {
  Config c = open_config("run");
  c.train.max_steps = 50;
  EXPECT_EQ(train(c), 0);
  EXPECT_EQ(steps("run", "validation"), (std::vector<int64_t>{5, 10, 15, 20, 25, 30, 35, 40, 45, 50}));
  EXPECT_EQ(steps("run", "checkpoint"), steps("run", "validation"));
  EXPECT_EQ(steps("run", "report").size(), 11u) << "and the first update";
}

TEST_F(ShortRun, OfMinutesShowsAndSavesTenTimesAlsoInterrupted) {
  const auto with = [&](const std::string& run) {
    Config c = open_config(run);
    c.train.max_steps = 0, c.train.max_minutes = 3.1, c.train.optimizer.schedule = RateSchedule::linear;  // 186 updates
    return c;
  };
  EXPECT_EQ(train(with("whole")), 0);
  EXPECT_EQ(steps("whole", "report").at(1), 12) << "a twentieth of the time, nine updates and a bit, after the second has begun";
  EXPECT_GE(steps("whole", "report").size(), 10u);
  EXPECT_GE(steps("whole", "validation").size(), 10u);
  EXPECT_GE(steps("whole", "checkpoint").size(), 10u);
  EXPECT_EQ(steps("whole", "validation").back(), 186) << "and nothing after the end";
  EXPECT_EQ(train(with("parts"), 100), 128 + SIGTERM);
  EXPECT_EQ(train(with("parts")), 0);
  EXPECT_EQ(steps("parts", "validation"), steps("whole", "validation"));
  EXPECT_EQ(steps("parts", "report"), steps("whole", "report"));
  for (const char* file : {"model.safetensors", "rank-0.safetensors"})
    EXPECT_EQ(hash("parts", "00000186", file), hash("whole", "00000186", file)) << file;
}

// 180 updates of a run of three minutes: the warm-up of 1,000 would never end, so it is an eighth of the run, and the peak that of 400.
TEST_F(ShortRun, TheWarmUpKnowsTheMinutes) {
  Config c = open_config("run");
  c.train.max_steps = 0, c.train.max_minutes = 3, c.log.every = 1;
  c.train.optimizer.schedule = RateSchedule::linear, c.train.optimizer.warmup = 1000, c.train.optimizer.learning_rate = 1e-3;
  c.train.optimizer.warmup_share = 0.125;
  EXPECT_EQ(train(c), 0);
  std::map<int64_t, double> rates;
  for (const auto& event : events("run", "report")) rates[event.at("step")] = event.at("learning_rate");
  const double peak = 1e-3 * std::sqrt(1000.0 / 400);
  EXPECT_NEAR(rates.at(10), peak * 9 / 22.5, 1e-6) << "when an update begins, nine seconds have gone";
  EXPECT_NEAR(rates.at(100), peak * (180 - 99) / 157.5, 1e-6);
  EXPECT_LT(rates.at(180), 0.02 * peak);
  std::ifstream log(path("run") + "/train.log");
  const std::string text((std::istreambuf_iterator<char>(log)), {});
  EXPECT_THAT(text, HasSubstr("learning rate 0.001 after 1000 updates of warm-up"));
  EXPECT_THAT(text,
              HasSubstr(", or after 12.5 % of the run's time if that is sooner, with 0.00158 at most then; then linear, to 0 after 3"));
}

}  // namespace
}  // namespace starling
