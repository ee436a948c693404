// Runs that go on with other ranks: another number, another division of the model, another keeper of the optimizer's state. They train on
// the same sentences in the same order, and their losses are those of one worker.
#include <gtest/gtest.h>

#include "tests/faults/fault_runs.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

enum class Keeper : uint8_t { everybody, shares, server };

Layout layout(int64_t stages, int64_t shards, int replicas, Keeper keeper = Keeper::everybody, OptimizerKind kind = OptimizerKind::adam) {
  const int ranks = static_cast<int>(stages * shards) * replicas;
  return {fmt::format("{} stages, {} shards, {} replicas{}{}", stages, shards, replicas,
                      keeper == Keeper::shares   ? ", sharded"
                      : keeper == Keeper::server ? ", servers"
                                                 : "",
                      kind == OptimizerKind::muon ? ", Muon" : ""),
          ranks, Layout::synchronous, [=](Config& c) {
            c.model.encoder_layers = 2;
            c.parallel.pipeline = stages, c.parallel.tensor = shards;
            c.strategy.sharded_optimizer = keeper == Keeper::shares;
            if (keeper == Keeper::server) c.strategy.name = "parameter-server";
            c.train.optimizer.optimizer = kind;
            c.valid.every = 1000;
          }};
}

class Elastic : public testing::Test {
 protected:
  // Each layout begins, and each continues.
  void expect_as_one_worker(const std::vector<Layout>& layouts, OptimizerKind kind = OptimizerKind::adam) {
    const Outcome one = runs_.relay({{layout(1, 1, 1, Keeper::everybody, kind), 0}});
    double worst = 0;
    int runs = 0;
    for (const Layout& first : layouts)
      for (const Layout& second : layouts) {
        const Outcome outcome = runs_.relay({{first, 5}, {second, 0}});
        ++runs;
        ASSERT_EQ(outcome.begins, (std::vector<int64_t>{1, 7})) << "a request to stop is heard with the sums of the next update";
        ASSERT_EQ(outcome.reports.size(), one.reports.size());
        for (const auto& [step, report] : outcome.reports) {
          const UpdateReport& expected = one.reports.at(step);
          ASSERT_EQ(report.target_tokens, expected.target_tokens) << first.name << " then " << second.name << ", update " << step;
          ASSERT_EQ(report.sentences, expected.sentences);
          const double apart = std::abs(report.loss - expected.loss) / expected.loss;
          ASSERT_LT(apart, 1e-5) << first.name << " then " << second.name << ", update " << step;
          worst = std::max(worst, apart);
        }
      }
    std::cout << runs << " runs; losses differ by " << worst << " at most" << std::endl;
  }
  FaultRuns runs_;
};

TEST_F(Elastic, AnyNumberOfReplicas) { expect_as_one_worker({layout(1, 1, 1), layout(1, 1, 2), layout(1, 1, 4), layout(1, 1, 8)}); }

TEST_F(Elastic, AnyNumberOfSharesOfAdam) {
  std::vector<Layout> all;
  for (const int ranks : of_cases({1, 8, 2, 4}, 2)) all.push_back(layout(1, 1, ranks, Keeper::shares));
  for (const int ranks : of_cases({4, 8, 2}, 1)) all.push_back(layout(1, 1, ranks));
  for (const int ranks : of_cases({2, 8, 4}, 1)) all.push_back(layout(1, 1, ranks, Keeper::server));
  expect_as_one_worker(all);
}

TEST_F(Elastic, AnyNumberOfSharesOfMuon) {
  std::vector<Layout> all;
  for (const int ranks : of_cases({1, 4, 2, 8}, 2)) all.push_back(layout(1, 1, ranks, Keeper::shares, OptimizerKind::muon));
  for (const int ranks : of_cases({2, 4}, 1)) all.push_back(layout(1, 1, ranks, Keeper::everybody, OptimizerKind::muon));
  expect_as_one_worker(all, OptimizerKind::muon);
}

TEST_F(Elastic, AnyDivisionOfEightRanks) {
  std::vector<Layout> all;
  for (const auto& [stages, shards, replicas] :
       of_cases<std::tuple<int, int, int>>({{2, 2, 2}, {1, 1, 8}, {4, 2, 1}, {2, 1, 4}, {1, 2, 4}, {4, 1, 2}, {2, 4, 1}, {1, 4, 2}}, 3))
    all.push_back(layout(stages, shards, replicas));
  expect_as_one_worker(all);
}

}  // namespace
}  // namespace starling
