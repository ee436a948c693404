// Training on an emulated card that has little memory: what is too much is an error with numbers and keys, and the card goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/world.h"
#include "models/model.h"
#include "replica/replica.h"
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

// Of what is free before the first update, a step takes no more than is told, and not much less.
TEST_F(EmulatedMemory, AStepTakesWhatIsTold) {
  const auto model = this->model(128);
  World world = make_local_world();
  Replica replica(*model, {}, world);
  const int64_t before = usable();
  Config config;
  config.model = model->config(), config.train.batch_tokens = 100000;
  const int64_t parameters = model->parameters().count();
  const MicroBatchNeed need{.activation_bytes = 2, .parameters = parameters, .best = 100000, .later_bytes = 4, .card = true};
  const int64_t tokens = micro_batch_tokens(config, need, backend_->memory().usable(), [](const std::string&) {});
  Batch batch;
  for (uint64_t seed = 1; batch.target.count() < tokens; ++seed) {
    const Batch more = random_batch(1, kMemoryVocabulary, seed, 30);
    for (auto [from, to] : {std::pair(&more.source, &batch.source), {&more.target, &batch.target}})
      to->append(from->tokens.data(), from->tokens.data() + from->tokens.size());
    batch.sample_ids.push_back(batch.source.sentences());
  }
  RecordProperty("tokens", static_cast<int>(tokens));
  replica.step({&batch, 1});
  const auto taken = static_cast<double>(before - usable());
  const double told = static_cast<double>(parameters * 4) + static_cast<double>(tokens) * bytes_per_token(config.model, 2, 1);
  EXPECT_LT(taken, told + 8 * kMiB) << tokens;  // of the arena
  EXPECT_GT(taken, 0.5 * told) << tokens;
}

}  // namespace
}  // namespace starling
