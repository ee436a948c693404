// `starling simulate` and `starling bench distributed --cluster` as users call them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/program/called.h"

namespace starling {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

class SimulateTest : public CalledTest {
 protected:
  SimulateTest() {
    write_counting();
    write("c.yml",
          "data: {source: a, target: b}\nvocab: {size: 40}\n"
          "model: {preset: transformer-tiny, width: 32, feed-forward: 64}\n"
          "train: {batch-tokens: 300, max-steps: 4, precision: f32}\nlog: {every: 2}\n");
    write("cluster.yml",
          "cluster: {ranks: 3, network: 1gbe, forward-gflops: 1, backward-gflops: 1, update-gb-s: 5, "
          "memory-gb-s: 5, stragglers: [{rank: 1, factor: 3}]}\n");
  }
};

std::string after(const std::string& text, const std::string& key, size_t length) {
  const size_t at = text.find(key);
  return at == std::string::npos ? "missing" : text.substr(at + key.size(), length);
}

TEST_F(SimulateTest, ALostRankHasAnExitStatusOfItsOwn) {
  write("lost.yml",
        "cluster: {ranks: 3, network: 1gbe, forward-gflops: 1, backward-gflops: 1, update-gb-s: 5, memory-gb-s: 5, "
        "crashes: [{rank: 2, at-s: 0.001}]}\n");
  const ShellOutcome lost = call("simulate -c c.yml --cluster lost.yml --train.output lost --strategy.deadline-seconds 5");
  EXPECT_EQ(lost.status, 5) << lost.text;
  EXPECT_THAT(lost.text, HasSubstr("rank 2"));
}

TEST_F(SimulateTest, TrainsForRealAndTwoRunsAreEqual) {
  const ShellOutcome one = call("train -c c.yml --train.output one --threads 1");
  const ShellOutcome first = call("simulate -c c.yml --cluster cluster.yml --train.output x --trace x.json");
  const ShellOutcome second = call("simulate -c c.yml --cluster cluster.yml --train.output y --cluster.threads 1 --trace y.json");
  ASSERT_EQ(first.status, 0) << first.text;
  EXPECT_THAT(first.text, HasSubstr("simulated: 3 ranks, network 1gbe"));
  EXPECT_THAT(first.text, HasSubstr("one worker alone, by the same model of computing"));
  EXPECT_THAT(first.text, HasSubstr(" tok/s virtual | "));
  EXPECT_THAT(first.text, HasSubstr("4 updates in 0:00 virtual, "));
  EXPECT_THAT(one.text, testing::Not(HasSubstr("virtual")));
  // Every event of both runs, at the same virtual time.
  const auto trace_in = [&](const std::string& name) {
    std::ifstream file(directory_ + "/" + name);
    return nlohmann::json::parse(file);
  };
  const auto trace = trace_in("x.json");
  EXPECT_EQ(trace.at("traceEvents"), trace_in("y.json").at("traceEvents")) << second.text;
  EXPECT_EQ(after(first.text, "step 4 | epoch 1 | loss ", 6), after(one.text, "step 4 | epoch 1 | loss ", 6)) << first.text << one.text;

  double computing[3] = {};
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("ph") == "X" && event.at("tid").get<int>() % 2 == 0 && !event.at("name").get<std::string>().starts_with("wait"))
      computing[event.at("pid").get<int>()] += event.at("dur").get<double>();
  EXPECT_NEAR(computing[1] / computing[0], 3, 0.6) << "rank 1 is the straggler";
}

// Three workers that share an update and wait for nothing are nearly three times as fast as one; a run of one is its own measure.
TEST_F(SimulateTest, ComparesWithOneWorker) {
  write("quick.yml",
        "cluster: {ranks: 3, latency-us: 0, bandwidth-gbit-s: 10000, message-us: 0, piece-us: 0, forward-gflops: 1, backward-gflops: 1, "
        "update-gb-s: 5, memory-gb-s: 5}\n");
  const auto ratio = [&](const std::string& options) {
    const ShellOutcome outcome =
        call("simulate c.yml --cluster quick.yml --train.batch-tokens 3000 --train.max-steps 6 --train.output " + options);
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    const std::string line = after(outcome.text, "one worker alone, by the same model of computing, ", 40);
    return std::stod("0" + after(line, ": ", 8));
  };
  EXPECT_EQ(ratio("alone --workers 1"), 1);
  EXPECT_NEAR(ratio("three"), 2.9, 0.15);
  // Both ranks of a replica in stages see its tokens, which count once.
  const double stages = ratio("stages --workers 2 --parallel.pipeline 2");
  EXPECT_GT(stages, 1);
  EXPECT_LT(stages, 2);
}

// Each rank computes every micro-batch of an update forwards and backwards; the trace says which, and of which stage.
TEST_F(SimulateTest, TracesShowStagesAndMicroBatches) {
  const ShellOutcome outcome = call(
      "simulate c.yml --cluster cluster.yml --workers 4 --parallel.pipeline 2 --parallel.tensor 2 "
      "--parallel.micro-batches 3 --train.max-steps 1 --train.output parts --trace parts.json");
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  std::ifstream file(directory_ + "/parts.json");
  std::map<std::pair<int, std::string>, double> seconds;  // by stage and name
  const auto trace = nlohmann::json::parse(file);
  for (const auto& event : trace.at("traceEvents"))
    if (event.contains("args") && event["args"].contains("micro_batch")) {
      EXPECT_EQ(event["args"]["stage"], event.at("tid").get<int>() / 4);
      seconds[{event["args"]["stage"], event["name"]}] += event.at("dur").get<double>();
    }
  ASSERT_EQ(seconds.size(), 12u);
  for (const std::string pass : {"forward 0", "forward 1", "forward 2", "backward 0", "backward 1", "backward 2"})
    for (const int stage : {0, 1}) EXPECT_GT((seconds[{stage, pass}]), 0) << stage << " " << pass;
}

TEST_F(SimulateTest, MeasuresTheMachineOnceAndKeepsTheRates) {
  const ShellOutcome first = call("simulate -c c.yml --workers 2 --train.output x");
  ASSERT_EQ(first.status, 0) << first.text;
  EXPECT_THAT(first.text, HasSubstr("computing rates, measured with 1 thread of this machine"));
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/x/cluster.yml"));
  EXPECT_THAT(call("simulate -c c.yml --workers 2 --train.output x --train.max-steps 5").text,
              HasSubstr("computing rates: those of x/cluster.yml"));
}

TEST_F(SimulateTest, SaysWhatIsWrong) {
  const ShellOutcome network = call("simulate -c c.yml --workers 2 --network 10gb");
  EXPECT_EQ(network.status, 2);
  EXPECT_THAT(network.text, HasSubstr("10gbe"));
  const ShellOutcome option = call("simulate -c c.yml --worker 2");
  EXPECT_EQ(option.status, 2);
  EXPECT_THAT(option.text, HasSubstr("--workers"));
  const ShellOutcome servers =
      call("simulate -c c.yml --cluster cluster.yml --train.output z --strategy.name parameter-server --strategy.servers 3");
  EXPECT_EQ(servers.status, 2) << servers.text;
  EXPECT_THAT(servers.text, HasSubstr("leaves no rank of 3 to compute"));
  EXPECT_EQ(call("simulate -c c.yml --cluster cluster.yml --cluster.timing-only true").status, 2);
  const ShellOutcome crash =
      call("simulate -c c.yml --cluster cluster.yml --train.output w --cluster.crashes.0.rank 2 --strategy.deadline-seconds 5");
  EXPECT_NE(crash.status, 0);
}

TEST_F(SimulateTest, PredictsTheTimesOfManyRanks) {
  const ShellOutcome outcome = call(
      "bench distributed --preset transformer-tiny --vocabulary 1000 --batch-tokens 500 --batches 2 --steps 2 --format json "
      "--cluster cluster.yml --workers 16 --cluster.timing-only true --cluster.forward-gflops 50 --cluster.backward-gflops 50");
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  const size_t begin = outcome.text.find('{');  // before it, on standard error: what it is doing
  ASSERT_NE(begin, std::string::npos);
  EXPECT_THAT(outcome.text.substr(0, begin),
              testing::MatchesRegex("simulating 16 ranks with transformer-tiny: making models and batches\neach kind of step once, to warm "
                                    "up\nround 1 of 1: 2 steps of each kind\nthe link, and the exchange without computing\n"));
  const auto result = nlohmann::json::parse(outcome.text.substr(begin));
  EXPECT_EQ(result.at("ranks"), 16);
  EXPECT_TRUE(result.at("simulated").get<bool>());
  const double blocking = result.at("blocking_ms"), overlapped = result.at("overlapped_ms"), local = result.at("local_ms");
  EXPECT_LE(overlapped, 1.001 * blocking);  // with one bucket they are equal, but for what lies before them
  EXPECT_GT(overlapped, local);
  // 2 (N-1)/N M bytes at 0.94 Gbit/s, and the latencies of 30 rounds for each bucket.
  const double ring = 2.0 * 15 / 16 * result.at("gradient_mib").get<double>() * (1 << 20) * 8 / 0.94e9 * 1e3;
  EXPECT_NEAR(result.at("exchange_ms").get<double>() / ring, 1.1, 0.25);
}

// Parameters come back during the next forward pass, but not into one that another replica of the same parameters makes alone.
TEST_F(SimulateTest, BenchDistributedMeasuresSharedOptimizers) {
  for (const std::string strategy : {"--strategy.sharded-optimizer true", "--strategy.name parameter-server"})
    for (const std::string wire : {"f32", "bf16"}) {
      const ShellOutcome o = call(
          "bench distributed --preset transformer-tiny --vocabulary 100 --batch-tokens 50 --batches 2 --steps 2 --threads 1 "
          "--cluster cluster.yml --workers 3 --format json --strategy.wire " +
          wire + " " + strategy);
      ASSERT_EQ(o.status, 0) << o.text;
      const auto result = nlohmann::json::parse(o.text.substr(o.text.find('{')));
      const double blocking = result.at("blocking_ms"), overlapped = result.at("overlapped_ms");
      EXPECT_LE(overlapped, 1.001 * blocking) << strategy;  // what begins in pieces costs some microseconds more
    }
}

// A measurement takes minutes, and over MPI it was silent until its end.
TEST_F(SimulateTest, BenchDistributedTellsWhatItIsAt) {
  const ShellOutcome o = call(
      "bench distributed --preset transformer-tiny --vocabulary 100 --batch-tokens 50 --batches 2 --steps 2 --threads 1 --format json");
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, testing::StartsWith("each kind of step once, to warm up\nround 1 of 1: 3 steps of each kind\n"));
  EXPECT_THAT(o.text, testing::HasSubstr("\n{\n"));  // behind a warning, if other programs disturb the measurement
}

}  // namespace
}  // namespace starling
