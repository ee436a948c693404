// Asynchronous runs that fail or are refused, and those that are timed alone.
#include <gmock/gmock.h>

#include "config/config.h"
#include "tests/strategies/slow_cluster.h"

namespace starling {
namespace {

using testing::HasSubstr;

// How a run of three workers ends of which the second crashes.
std::string error_after_a_crash(AsynchronousRun run) {
  run.max_steps = 20, run.strategy.deadline_seconds = 5;
  Scenario scenario = slow_cluster(4);
  scenario.crashes = {{.rank = 1, .at_s = 0.05}};
  try {
    simulated(run, scenario);
  } catch (const PeerError& e) {
    return e.what();
  }
  return "";
}

TEST(Asynchronous, TheOthersGoOnWithoutACrashedWorker) {
  const std::string error = error_after_a_crash({});
  EXPECT_THAT(error, testing::ContainsRegex("rank 3 \\(node3\\): any of 1 operations waited 4\\.[0-9]+ s; a message from rank 1"));
  EXPECT_THAT(error, HasSubstr("it has crashed"));
}

TEST(Asynchronous, AWorkerThatAllOthersWaitForIsNamedAtTheDeadline) {
  EXPECT_THAT(error_after_a_crash(in_step(1)),
              testing::ContainsRegex("rank 3 \\(node3\\): any of 1 operations waited 4\\.[0-9]+ s; a message from rank 1"));
}

TEST(Asynchronous, ALossThatIsNotFiniteEndsTheRun) {
  AsynchronousRun run;
  run.optimizer = "sgd", run.rate = 1e200, run.max_steps = 50;
  try {
    simulated(run, slow_cluster(3));
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("is not finite"));
    EXPECT_THAT(e.what(), HasSubstr("epoch 1, batch"));
  }
}

// What is only timed takes the same time and comes in the same order.
TEST(Asynchronous, CanBeTimedWithoutComputing) {
  AsynchronousRun run;
  run.backend = "cpu:f32", run.strategy.servers = 2, run.strategy.wire = Wire::bf16, run.strategy.asynchronous.delay_compensation = 1;
  Scenario scenario = slow_cluster(5);
  scenario.jitter = 0.2;
  const Simulated computed = simulated(run, scenario);
  scenario.timing_only = true;
  const Simulated timed = simulated(run, scenario);
  for (size_t r = 0; r < 5; ++r) EXPECT_EQ(timed.result.ranks[r].computed_ns, computed.result.ranks[r].computed_ns);
  EXPECT_EQ(timed.first().figures, computed.first().figures);
  EXPECT_EQ(timed.first().told_tokens, computed.first().told_tokens);
}

TEST(Asynchronous, TheNameOfGnmtsRecipeStandsForItsOptions) {
  const StrategyOptions o = strategy_preset("gnmt-downpour");
  EXPECT_EQ(family_of(o), Family::asynchronous);
  EXPECT_EQ(o.asynchronous.push_clip, 5);
  EXPECT_FALSE(o.overlap);
  EXPECT_EQ(o.asynchronous.push_interval, 1);
  EXPECT_EQ(o.asynchronous.fetch_interval, 1);
  EXPECT_EQ(o.batch, BatchScope::per_worker);
}

TEST(Asynchronous, WhatCannotBeIsRefused) {
  const auto refused = [](int ranks, const std::function<void(StrategyOptions&)>& change) -> std::string {
    AsynchronousRun run;
    change(run.strategy);
    try {
      simulated(run, slow_cluster(ranks));
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(refused(1, [](StrategyOptions&) {}),
              HasSubstr("strategy downpour needs a rank for each of its 1 servers and at least one worker"));
  EXPECT_THAT(refused(3, [](StrategyOptions& o) { o.servers = 3; }), HasSubstr("start 4 ranks"));
  const auto waiting = [](StrategyOptions& o) { o.asynchronous.sum_pushes = 3, o.asynchronous.wait_for_step = true; };
  EXPECT_THAT(refused(3, waiting), HasSubstr("strategy.overlap would ask for too early"));
  EXPECT_THAT(refused(3, [&](StrategyOptions& o) { waiting(o), o.overlap = false; }),
              HasSubstr("strategy.asynchronous.sum-pushes 3 is more than the 2 workers"));
  EXPECT_THAT(refused(3, [](StrategyOptions& o) { o.server_placement = ServerPlacement::shared; }), HasSubstr("strategy.server-placement"));
}

}  // namespace
}  // namespace starling
