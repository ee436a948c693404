// Every rank learns what the others report about the end of the run, together with the statistics, whichever strategy exchanges them.
#include <gtest/gtest.h>

#include "sim/simulate.h"
#include "strategies/factory.h"
#include "strategies/steps.h"
#include "tests/strategies/plain_worker.h"

namespace starling {
namespace {

// Every rank asks to stop and says twice that it has finished; rank 0 tells the time.
class Controlled : public PlainWorker {
 public:
  explicit Controlled(World& world) : PlainWorker(world, 0.1, 3) {
    parameters().add("decoder.0.weight", {40, 1}, {});
    allocate();
  }
  void gradients(const Calls& calls) override {
    parameters().gradients().from_doubles(std::vector<double>(static_cast<size_t>(parameters().flat_count()), 0.5));
    PlainWorker::gradients(calls);
  }
  StepSums sums() override {
    StepSums sums = PlainWorker::sums();
    sums.control = {1, 2, comm().rank() == 0 ? 0.25 : 0};
    return sums;
  }
};

TEST(StepControl, ComesToAllRanksWithEveryStrategy) {
  constexpr int kRanks = 3, kSteps = 4;
  for (const char* name : {"all-reduce", "gradient-dropping", "sparse-local", "model-average", "bmuf"}) {
    StrategyOptions options = strategy_preset(name);
    if (family_of(options) == Family::periodic) options.periodic.interval = 2;
    options.synchronous_steps = 0;
    Scenario scenario;
    scenario.ranks = kRanks;
    std::vector<StepSums> all(kRanks);
    simulate(scenario, [&](World& world) {
      Controlled worker(world);
      const auto strategy = make_strategy(options, worker.parameters(), {}, world.comm->rank(), kRanks);
      strategy->begin(worker);
      for (int step = 0; step < kSteps; ++step) {
        const StepResult result = strategy->step(worker);
        all[static_cast<size_t>(world.comm->rank())] += {result.totals, result.control};
      }
    });
    for (const StepSums& sums : all) {
      EXPECT_EQ(sums.totals.tokens, 3 * kRanks * kSteps) << name;
      EXPECT_EQ(sums.control.stop, kRanks * kSteps) << name;
      EXPECT_EQ(sums.control.finished, 2 * kRanks * kSteps) << name;
      EXPECT_EQ(sums.control.time_gone, 0.25 * kSteps) << name;
    }
  }
}

}  // namespace
}  // namespace starling
