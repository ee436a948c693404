// `starling plan` and the layouts of `bench distributed`, as a user starts them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/program/called.h"

namespace starling {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

const std::string kRates = " --cluster.forward-gflops 50 --cluster.backward-gflops 50 --cluster.update-gb-s 5 --cluster.memory-gb-s 8";

ShellOutcome starling(const std::string& arguments) { return call_in(".", words_of(arguments)); }

TEST(PlanVerb, ListsWhatFitsAndTheKeysToWrite) {
  const std::string model = "plan --model.preset transformer-tiny --vocab.size 500 --workers 4 --network 1gbe" + kRates;
  const ShellOutcome all = starling(model + " --memory 4 --show 3");
  ASSERT_EQ(all.status, 0) << all.text;
  EXPECT_THAT(all.text, HasSubstr("simulated: 4 ranks, network 1gbe, transformer-tiny"));
  EXPECT_THAT(all.text, HasSubstr("memory of a rank: 4.00 GiB"));
  EXPECT_THAT(all.text, HasSubstr("speed is not all"));
  EXPECT_THAT(all.text, HasSubstr("for the first, write:\n  strategy:\n    "));

  const ShellOutcome json = run_shell("('" STARLING_BINARY "' " + model + " --format json 2>/dev/null)");  // without progress
  ASSERT_EQ(json.status, 0) << json.text;
  const auto rows = nlohmann::json::parse(json.text);
  ASSERT_EQ(rows.size(), 21u);
  // What no rank has room for but four of them together: the first rows are of models that are divided.
  double whole = 1e300;
  for (const auto& row : rows)
    if (row["replicas"] == 4) whole = std::min(whole, row["memory_mib"].get<double>());
  const ShellOutcome less = starling(model + fmt::format(" --memory {:.5f}", 0.99 * whole / 1024));
  EXPECT_THAT(less.text, HasSubstr("for the first, write:\n  parallel:\n    "));
  EXPECT_THAT(less.text, HasSubstr("does not fit"));
  EXPECT_THAT(starling(model + " --memory 0.0001").text, HasSubstr("nothing fits: the smallest need is "));
  EXPECT_THAT(starling(model + " --train.objective mixed").text, HasSubstr("starling simulate"));
}

// A plan is of the run that these files would train.
TEST(PlanVerb, KnowsWhatTheCorpusChooses) {
  const std::string corpus = testing::TempDir() + "starling_plan_" + std::to_string(::getpid()) + ".gz";
  std::ofstream{corpus}, std::filesystem::resize_file(corpus, 2'000'000);  // 1.3 million pieces, by its size
  const std::string plan =
      "plan --vocab.size 500 --workers 2 --network 1gbe --memory 4 --data.source " + corpus + " --data.target " + corpus;
  const ShellOutcome chosen = starling(plan + kRates);
  ASSERT_EQ(chosen.status, 0) << chosen.text;
  EXPECT_THAT(chosen.text, HasSubstr("chosen for a corpus of about 1.3 M target tokens: model.preset transformer-small, "));
  EXPECT_THAT(chosen.text, HasSubstr("network 1gbe, transformer-small with "));
  EXPECT_THAT(starling(plan + kRates + " --model.preset transformer-tiny").text, HasSubstr("network 1gbe, transformer-tiny with "));
  std::filesystem::remove(corpus);
}

class PlanHistory : public CalledTest {
 protected:
  // A run of two ranks with this throughput, in target tokens per second.
  void write_run(const std::string& name, double tokens_per_second) {
    std::filesystem::create_directory(path(name));
    write(name + "/config.yml", "model: {preset: transformer-tiny}\nvocab: {size: 500}\ntrain: {batch-tokens: 1000}\n");
    std::string events = R"({"type":"start","step":0,"ranks":2,"strategy":"synchronous","backend":"cpu, f32 activations, 1 thread, x"})"
                         "\n";
    for (int i = 1; i <= 4; ++i)
      events += fmt::format(R"({{"type":"report","step":{},"seconds":10,"target_tokens":{}}})"
                            "\n",
                            10 * i, 10 * tokens_per_second);
    write(name + "/events.jsonl", events);
  }
  ShellOutcome plan(const std::string& arguments) const {
    return run_shell("cd '" + path("") + "' && XDG_STATE_HOME='" + path("state") + "' '" STARLING_BINARY "' plan " + arguments + kRates);
  }
};

TEST_F(PlanHistory, SaysHowWellPredictionsDidAndHowSureTheNextOneIs) {
  EXPECT_THAT(plan("--history").text, HasSubstr("no run of this host has been compared with its prediction"));
  const std::string four = "--model.preset transformer-tiny --vocab.size 500 --workers 4 --network 1gbe --memory 4 --show 1";
  EXPECT_THAT(plan(four).text, HasSubstr("an update takes 0.90 to 1.12 times as long as predicted, judging by other hosts"));

  write_run("a", 20000);
  const ShellOutcome one = plan("--history a");
  ASSERT_EQ(one.status, 0) << one.text;
  EXPECT_THAT(one.text, ContainsRegex("/a  transformer-tiny +synchronous +2 +[0-9]+ +20000 +[-+]"));
  // What is predicted for it, as what it then measured: no error.
  const size_t at = one.text.find("synchronous") + 24;
  const double predicted = std::stod(one.text.substr(at));
  write_run("b", predicted);
  const ShellOutcome both = plan("--history a b");
  EXPECT_THAT(both.text, ContainsRegex("/b  transformer-tiny +synchronous +2 +([0-9]+) +[0-9]+ +[-+]0.0%"));
  EXPECT_THAT(plan("--history").text, HasSubstr("judging by 2 earlier predictions on this host"));
  EXPECT_THAT(plan(four).text, HasSubstr("judging by 2 earlier predictions on this host"));

  EXPECT_EQ(plan("--history nowhere").status, 2);
  EXPECT_THAT(plan("--history nowhere").text, HasSubstr("nowhere is not the directory of a run that has trained"));
}

TEST(BenchLayout, IsSimulatedInStages) {
  const std::string bench = "bench distributed --preset transformer-tiny --vocabulary 500 --workers 4 --network 10gbe" + kRates;
  const ShellOutcome two = starling(bench + " --parallel.pipeline 2 --format json");
  ASSERT_EQ(two.status, 0) << two.text;
  const auto json = nlohmann::json::parse(two.text);
  EXPECT_EQ(json["simulated"], true);
  EXPECT_EQ(json["stages"], 2);
  EXPECT_EQ(json["replicas"], 2);
  EXPECT_EQ(json["memory_mib"].size(), 4u);
  EXPECT_THAT(starling(bench + " --parallel.pipeline 3").text, HasSubstr("but 4 are not a multiple of that; start 3 or 6 ranks"));
  EXPECT_THAT(starling(bench + " --parallel.pipeline 2").text, HasSubstr("bubble: stages are idle for "));
}

// Whole replicas are a layout too, of strategies that exchange now and then as well; pieces of time are those of stages of GNMT.
TEST(BenchLayout, IsSimulatedOfWholeReplicasAndInPiecesOfTime) {
  const std::string bench = "bench distributed --workers 2 --network 10gbe" + kRates;
  const auto step = [&](const std::string& more) {
    const ShellOutcome run = starling(bench + more + " --format json");
    EXPECT_EQ(run.status, 0) << run.text;
    return nlohmann::json::parse(run.text);
  };
  const auto whole = step(" --preset transformer-tiny --vocabulary 500 --batch-tokens 400 --parallel.pipeline 1");
  EXPECT_EQ(whole["stages"], 1);
  EXPECT_EQ(whole["replicas"], 2);
  const auto local = step(
      " --preset transformer-tiny --vocabulary 500 --batch-tokens 400 --parallel.pipeline 1 --strategy.name model-average "
      "--strategy.periodic.interval 4");
  EXPECT_LT(local["step_ms"].get<double>(), whole["step_ms"].get<double>());

  // One micro-batch: the stages take turns, but for pieces of time. So large a vocabulary puts the cut between the decoder's layers.
  const std::string stages = " --preset gnmt-small --parallel.pipeline 2 --parallel.micro-batches 1 --batch-tokens 2000";
  const double turns = step(stages)["bubble"], pieces = step(stages + " --parallel.time-pieces 4")["bubble"];
  EXPECT_GT(turns, 0.4);
  EXPECT_LT(pieces, turns - 0.03);

  EXPECT_THAT(starling(bench + " --parallel.time-pieces 4").text, HasSubstr("do nothing without stages; set --parallel.pipeline too"));
  EXPECT_THAT(starling(bench + " --preset transformer-tiny --parallel.pipeline 2 --parallel.time-pieces 4").text,
              HasSubstr("--parallel.time-pieces is for recurrent models, which transformer-tiny is not; leave it out"));
}

}  // namespace
}  // namespace starling
