// The guard among several ranks: all go back together, and stay equal.
#include "tests/strategies/distributed_run.h"

namespace starling {
namespace {

using testing::HasSubstr;

class GuardedRanks : public DistributedTrainer {
 protected:
  Config high(const std::string& run, double rate) const {
    Config c = config(run);
    c.guard.mode = GuardMode::act;
    c.valid.metrics.clear();
    c.train.max_steps = 60, c.train.optimizer.learning_rate = rate;
    return c;
  }
  std::string log(const std::string& run) const {
    std::ifstream file(path(run) + "/train.log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

// check-every compares the replicas bit for bit on the way.
TEST_F(GuardedRanks, GoBackTogether) {
  for (const bool sharded : {false, true}) {
    const std::string name = sharded ? "sharded" : "whole";
    Config c = high(name, 20);
    c.strategy.sharded_optimizer = sharded;
    ASSERT_EQ(run(c, 3), 0);
    EXPECT_THAT(log(name), HasSubstr("(rescue 2 of 8)"));
    EXPECT_THAT(log(name), testing::Not(HasSubstr("the parameters of rank")));
  }
}

// A rate at which the loss or a gradient overflows within a few updates.
TEST_F(GuardedRanks, GoBackFromWhatIsNotFinite) {
  Config c = high("run", 1e30);
  c.train.optimizer.warmup = 1;
  c.guard.most_rescues = 3;
  try {
    run(c, 2);
    FAIL() << "no error";
  } catch (const DivergedError& e) {
    EXPECT_THAT(e.what(), HasSubstr("the run has gone back 3 times already (guard.most-rescues)"));
  }
  EXPECT_THAT(log("run"), HasSubstr("is not finite in "));
  EXPECT_THAT(log("run"), HasSubstr("to update 0, with the same learning rate"));
  EXPECT_THAT(log("run"), HasSubstr("(rescue 3 of 3)"));
}

TEST_F(GuardedRanks, ReplicasThatDifferAreRefused) {
  Config c = high("run", 1e-3);
  c.strategy.name = "gradient-dropping";
  c.strategy.sparse.local_gradients = LocalPart::sum;
  try {
    run(c, 2);
    FAIL() << "no error";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("with strategy gradient-dropping as configured each rank has a state of its own"));
  }
}

}  // namespace
}  // namespace starling
