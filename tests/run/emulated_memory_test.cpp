// Training on an emulated card that has little memory: what is too much is an error with numbers and keys, and the card goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/world.h"
#include "models/model.h"
#include "replica/replica.h"
#include "run/memory_plan.h"
#include "settings/micro_batch.h"
#include "tests/emulated/emulator.h"
#include "tests/models/common.h"

namespace starling {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMemoryVocabulary = 40, kMiB = 1 << 20;

class EmulatedMemory : public testing::Test {
 protected:
  // 32 MiB of it are the workspace of products.
  EmulatedMemory() {
    emulated_cuda::set_card_memory(64 * kMiB);
    backend_ = make_backend("cuda-emulated:bf16");
  }
  ~EmulatedMemory() override { emulated_cuda::set_card_memory(size_t{8} << 30); }
  std::unique_ptr<Model> model(int64_t width) {
    ModelConfig c = model_preset("transformer-tiny");
    c.encoder_layers = c.decoder_layers = 1, c.width = width, c.feed_forward = 4 * width, c.heads = 2;
    return make_model(c, {kMemoryVocabulary, kMemoryVocabulary}, *backend_, 3, true);
  }
  int64_t usable() { return backend_->memory().usable().bytes; }
  template <class F>
  static std::string error(F f) {
    try {
      f();
    } catch (const std::exception& e) {
      return e.what();
    }
    return "no error";
  }
  std::unique_ptr<Backend> backend_;
};

TEST_F(EmulatedMemory, ABatchThatIsTooLargeIsAnErrorAfterWhichTheRunGoesOn) {
  const auto model = this->model(32);
  World world = make_local_world();
  Replica replica(*model, {}, world);
  const Batch few = random_batch(3, kMemoryVocabulary, 1), many = random_batch(4000, kMemoryVocabulary, 2, 30);
  const double before = replica.step({&few, 1}).totals.smoothed;
  EXPECT_THAT(error([&] {
                replica.step({&many, 1});
              }),
              AllOf(HasSubstr("out of memory on emulated on the CPU"), HasSubstr("MiB were asked for"), HasSubstr("of 64 MiB are free"),
                    HasSubstr("train.micro-batch-tokens")));
  const double after = replica.step({&few, 1}).totals.smoothed;
  EXPECT_LT(after, before);
  EXPECT_GT(after, 0.9 * before);
}

TEST_F(EmulatedMemory, AModelThatIsTooLargeIsAnErrorWhenItIsMade) {
  EXPECT_THAT(error([&] { model(1024); }), AllOf(HasSubstr("out of memory on"), HasSubstr("a smaller model")));
  EXPECT_GT(usable(), 31 * kMiB);
  EXPECT_NO_THROW(model(32));
}

PlannedRank planned(const Config& config, Replica& replica, const Mesh& mesh, const Batch& share) {
  return {config, replica, mesh, {share}};
}

// Of what is free before the first update, a step takes what is told.
TEST_F(EmulatedMemory, AStepTakesWhatIsTold) {
  const auto model = this->model(128);
  World world = make_local_world();
  Replica replica(*model, {}, world);
  const Mesh mesh(*world.comm);
  const int64_t before = usable();
  Config config;
  config.model = model->config();
  const Batch batch = random_batch(60, kMemoryVocabulary, 5, 60);
  // An arena may take a chunk of 8 MiB more than it needs.
  const MemoryPlan plan = plan_memory(planned(config, replica, mesh, batch), {before - 8 * kMiB, ""}, 0);
  EXPECT_LT(plan.micro_tokens, batch.target.count());
  replica.step(micro_batches(batch, plan.micro_tokens, config.parallel, replica.cost()));
  const auto taken = static_cast<double>(before - usable());
  const double told = plan.to_come() - plan.bytes_of("libraries");  // which an emulated card has not
  EXPECT_LT(taken, told + 8 * kMiB);                                // of the arena
  EXPECT_GT(taken, 0.9 * told);
}

TEST_F(EmulatedMemory, WhatTheCardCannotHoldIsAnErrorWithTheNumbers) {
  const auto model = this->model(128);
  World world = make_local_world();
  Replica replica(*model, {}, world);
  const Mesh mesh(*world.comm);
  Config config;
  config.model = model->config();
  const Batch batch = random_batch(400, kMemoryVocabulary, 5, 60);
  const PlannedRank rank = planned(config, replica, mesh, batch);
  const auto plan = [&](double mebibytes, int64_t asked = 0) {
    return plan_memory(rank, {static_cast<int64_t>(mebibytes * kMiB), "the other program"}, asked);
  };
  const MemoryPlan free = plan(4000);
  EXPECT_EQ(free.micro_tokens, backend_->best_micro_batch());
  EXPECT_EQ(free.warning, "");
  const double need = (free.to_come() - free.bytes_of("libraries")) / kMiB;
  EXPECT_EQ(free.bytes_of("libraries"), 250 * kMiB) << "a sixteenth of what is usable";
  EXPECT_EQ(plan(80000).bytes_of("libraries"), 1536 * kMiB);
  const MemoryPlan half = plan(0.5 * need), asked = plan(0.5 * need, free.micro_tokens);
  EXPECT_LT(half.micro_tokens, batch.target.count());
  EXPECT_GT(half.micro_tokens, batch.target.count() / 5);
  EXPECT_LT(half.to_come(), 0.9 * 0.5 * free.to_come());
  EXPECT_EQ(half.warning, "");
  EXPECT_EQ(asked.micro_tokens, free.micro_tokens);
  EXPECT_THAT(asked.warning, AllOf(HasSubstr("memory may not suffice"), HasSubstr("set train.micro-batch-tokens to less than 32768")));
  EXPECT_THAT(error([&] { plan(1); }), AllOf(HasSubstr("the model does not fit on the card: "),
                                             HasSubstr("usable is 1 MiB, which is what the other program leaves")));
}

}  // namespace
}  // namespace starling
