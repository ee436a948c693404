// Whole training runs with a card for each rank: `train.device: cuda` is an emulated card in this program.
#include <atomic>
#include <cstdlib>

#include "tests/cards/thread_world.h"
#include "tests/emulated/emulator.h"
#include "tests/strategies/distributed_run.h"

namespace starling {
namespace {

class CardsRun : public DistributedTrainer {
 protected:
  static void SetUpTestSuite() { forget_environment(); }
  void TearDown() override { forget_environment(); }
  static void forget_environment() {
    for (const char* name : {"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING", "NCCL_RUNTIME_CONNECT"}) unsetenv(name);
  }
  static std::string environment(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
  }
  Config config(const std::string& run) const {
    Config c = DistributedTrainer::config(run);
    c.train.device = "cuda", c.train.max_steps = 4, c.checkpoint.every = 2, c.valid.every = 2, c.log.every = 1;
    c.valid.metrics = {"cross-entropy"};
    return c;
  }
  static void run_connected(const Config& c, int ranks) {
    run_threads(ranks, [&](World& world) { EXPECT_EQ(run_training(c, world), 0); });
  }
  std::string log(const std::string& run) const {
    std::ifstream file(path(run) + "/train.log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

// Set-up, validation, checkpoints and going on from one: the bits of simulated ranks, whose cards are not connected.
TEST_F(CardsRun, TrainsSavesAndGoesOnLikeSimulatedRanks) {
  EXPECT_EQ(run(config("simulated"), 2), 0);
  Config half = config("connected");
  half.train.max_steps = 2;
  run_connected(half, 2);
  run_connected(config("connected"), 2);
  EXPECT_EQ(hashes("connected", 4, 2), hashes("simulated", 4, 2));
  EXPECT_EQ(validations("connected"), validations("simulated"));
  EXPECT_THAT(log("connected"), testing::HasSubstr("2 cards are connected by NCCL 2.28.9"));
  EXPECT_EQ(environment("CUDA_MODULE_LOADING"), "EAGER");
  EXPECT_EQ(environment("CUDA_DEVICE_MAX_CONNECTIONS") + environment("NCCL_RUNTIME_CONNECT"), "") << "not divided, and not the library's";
}

TEST_F(CardsRun, StagesAndShards) {
  const auto with = [&](const std::string& name) {
    Config c = config(name);
    c.parallel.pipeline = c.parallel.tensor = 2, c.train.max_steps = 2;
    return c;
  };
  EXPECT_EQ(run(with("simulated"), 4), 0);
  run_connected(with("connected"), 4);
  EXPECT_EQ(hashes("connected", 2, 4), hashes("simulated", 2, 4));
  EXPECT_EQ(validations("connected"), validations("simulated"));
  EXPECT_EQ(emulated_cuda::max_connections(), "32") << "set before CUDA is called for the first time";
}

TEST_F(CardsRun, TheUsersEnvironmentIsLeftAsItIs) {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "16", 1), setenv("CUDA_MODULE_LOADING", "LAZY", 1);
  Config c = config("run");
  c.parallel.pipeline = 2, c.train.max_steps = 1, c.strategy.algorithm = Algorithm::library;
  run_connected(c, 2);
  EXPECT_EQ(emulated_cuda::max_connections(), "16");
  EXPECT_EQ(environment("CUDA_MODULE_LOADING"), "LAZY");
  EXPECT_EQ(environment("NCCL_RUNTIME_CONNECT"), "0");
}

// The error of one rank, in the middle of its run, ends the run of all, and is the one that is told.
TEST_F(CardsRun, ARankThatFailsEndsTheRun) {
  Config c = config("run");
  c.parallel.pipeline = 2, c.strategy.deadline_seconds = 1;
  std::atomic<int> ended = 0;
  const auto fail = [&](World& world) {
    TrainingWatch watch;
    const bool fails = world.comm->rank() == 1;
    if (fails) watch.resumed = [](bool) { throw DataError("line 3"); };
    try {
      run_training(c, world, watch);
    } catch (const Error& e) {
      ++ended;
      EXPECT_EQ(fails, std::string(e.what()) == "line 3") << e.what();
      throw;
    }
  };
  EXPECT_THROW(run_threads(2, fail), DataError);
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace starling
