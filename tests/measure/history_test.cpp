#include "measure/history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "base/random.h"
#include "base/user_directories.h"
#include "tests/data/fixtures.h"

namespace starling {
namespace {

class HistoryTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path(name); }
  void events(const std::string& text) { directory_.write("events.jsonl", text); }

 private:
  test::TemporaryDirectory directory_;
};

TEST_F(HistoryTest, TheThroughputIsThatOfTheLastProcessAfterItsFirstReport) {
  events(R"({"type":"start","step":0,"ranks":2,"strategy":"synchronous","backend":"cpu, f32 activations, 9 threads, v4"}
{"type":"report","step":10,"seconds":50,"target_tokens":100}
{"type":"report","step":20,"seconds":1,"target_tokens":9999}
{"type":"start","step":20,"ranks":4,"strategy":"synchronous","backend":"cpu, f32 activations, 12 threads, x86-64-v4"}
{"type":"report","step":30,"seconds":9,"target_tokens":1000}
{"type":"validation","step":30,"seconds":77}
{"type":"report","step":40,"seconds":5,"target_tokens":1000}
{"type":"report","step":50,"seconds":5,"target_tokens":2000}
{"type":"rep)");
  const MeasuredRun run = measured_run(path(""));
  EXPECT_EQ(run.ranks, 4);
  EXPECT_EQ(run.threads, 12);
  EXPECT_EQ(run.strategy, "synchronous");
  EXPECT_DOUBLE_EQ(run.seconds, 10);
  EXPECT_DOUBLE_EQ(run.target_tokens, 3000);
  EXPECT_DOUBLE_EQ(run.tokens_per_second(), 300);
}

TEST_F(HistoryTest, RunsThatTellNothingAreRefused) {
  EXPECT_THROW(measured_run(path("")), ConfigError);
  events("{\"type\":\"start\",\"step\":0,\"backend\":\"cuda, bf16\"}\n");
  EXPECT_THROW(measured_run(path("")), ConfigError) << "of a card";
  events("{\"type\":\"start\",\"step\":0,\"backend\":\"cpu\"}\n{\"type\":\"report\",\"step\":1,\"seconds\":1,\"target_tokens\":5}\n");
  try {
    measured_run(path(""));
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("has 1 report of"), std::string::npos) << e.what();
  }
}

PastPrediction past(const std::string& host, const std::string& run, double predicted, double measured) {
  return {"2026-11-27T00:00:00Z", host, "1.0", run, "transformer-small", "none", 1, predicted, measured};
}

TEST_F(HistoryTest, IsKeptAndARunCountsOnce) {
  const std::string file = path("state/predictions.jsonl");
  PredictionHistory history(file);
  EXPECT_TRUE(history.all().empty());
  history.add(past("alpha", "/a", 110, 100));
  history.add(past("beta", "/a", 50, 100));
  history.add(past("alpha", "/b \"x\"", 90, 100));
  history.add(past("alpha", "/a", 120, 100));
  const PredictionHistory again(file);
  const auto alpha = again.of_host("alpha");
  ASSERT_EQ(alpha.size(), 2u);
  EXPECT_EQ(alpha[0].run, "/b \"x\"");
  EXPECT_EQ(alpha[1].run, "/a");
  EXPECT_DOUBLE_EQ(alpha[1].ratio(), 1.2);
  EXPECT_EQ(again.of_host("beta").size(), 1u);
  EXPECT_EQ(again.of_host("gamma").size(), 0u);
}

TEST_F(HistoryTest, LinesThatAreNoPredictionsAreSkipped) {
  const std::string file = path("predictions.jsonl");
  std::ofstream(file) << "[]\n{\"host\":\"alpha\"}\nnot json\n"
                      << R"({"host":3,"predicted_tokens_per_second":1,"measured_tokens_per_second":2})"
                      << "\n"
                      << R"({"host":"alpha","predicted_tokens_per_second":3,"measured_tokens_per_second":2})"
                      << "\n";
  const PredictionHistory history(file);
  EXPECT_EQ(history.all().size(), 2u);
  EXPECT_EQ(history.of_host("alpha").size(), 1u);
}

// Without a record, the prior alone, whose mean counts as known from kPriorWeight cases.
TEST(Certainty, WithoutARecordIsThePrior) {
  const double half = 1.645 * kPriorDeviation * std::sqrt(1 + 1 / kPriorWeight);
  const Certainty c = certainty_of(0, {});
  EXPECT_NEAR(c.low, std::exp(-half), 1e-12);
  EXPECT_NEAR(c.high, std::exp(half), 1e-12);
  EXPECT_NEAR(certainty_of(0.1, {}).high, std::exp(1.645 * std::sqrt(0.0036 * 1.25 + 0.01)), 1e-12);
}

TEST(Certainty, FollowsALongRecord) {
  const std::vector<double> always(1000, 1.2);
  const Certainty c = certainty_of(0, always);
  EXPECT_NEAR(std::sqrt(c.low * c.high), 1.2, 0.001);
  EXPECT_LT(c.high / c.low, 1.06);
}

// Nine of ten new cases lie within, whatever the host's own bias and deviation are, once there is a record.
TEST(Certainty, HoldsNineOfTenTimes) {
  Random random(3, 4);
  for (const double bias : {-0.1, 0.0, 0.1})
    for (const double deviation : {0.06, 0.1}) {
      int within = 0;
      const int trials = 2000;
      for (int t = 0; t < trials; ++t) {
        std::vector<double> ratios;
        for (int i = 0; i < 20; ++i) ratios.push_back(std::exp(bias + deviation * random.normal()));
        const double next = std::exp(bias + deviation * random.normal());
        const Certainty c = certainty_of(0, ratios);
        within += next >= c.low && next <= c.high;
      }
      EXPECT_NEAR(within, 0.9 * trials, 0.05 * trials) << bias << " " << deviation;
    }
}

TEST(UserDirectories, FollowTheEnvironment) {
  const char* names[] = {"STARLING_TEST_XDG", "HOME"};
  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  unsetenv(names[0]);
  setenv("HOME", "/somebody", 1);
  EXPECT_EQ(user_directory(names[0], ".cache"), "/somebody/.cache/starling");
  setenv(names[0], "relative", 1);
  EXPECT_EQ(user_directory(names[0], ".cache"), "/somebody/.cache/starling");
  setenv(names[0], "/elsewhere", 1);
  EXPECT_EQ(user_directory(names[0], ".cache"), "/elsewhere/starling");
  unsetenv(names[0]);
  unsetenv("HOME");
  EXPECT_EQ(user_directory(names[0], ".cache"), "");
  if (!home.empty()) setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace starling
