// Training on an emulated card beside the processor: the same batches, dropout and label smoothing on, twenty updates.
#include <gtest/gtest.h>

#include <cmath>

#include "comm/world.h"
#include "models/model.h"
#include "replica/replica.h"
#include "tests/card/real_card.h"
#include "tests/models/common.h"

namespace starling {
namespace {

constexpr int kSteps = 20;
constexpr int64_t kEmulatedVocabulary = 40;

struct Trained {
  std::vector<double> losses;  // nats a token, label-smoothed
  std::vector<double> norms;   // of gradients
  std::vector<double> parameters;
};

ModelConfig tiny_model(const std::string& preset) {
  ModelConfig c = model_preset(preset);
  c.encoder_layers = c.decoder_layers = 2, c.width = 32, c.feed_forward = 64;
  c.dropout = 0.2;
  if (c.heads > 1) c.heads = 4, c.attention_dropout = 0.1, c.feed_forward_dropout = 0.1;
  return c;
}

// Two micro-batches an update. Epsilon is large beside gradients of nothing but rounding, which Adam would else blow up to whole steps.
Trained train(const std::string& preset, const char* spec) {
  const auto backend = make_backend(spec, 1);
  const auto model = make_model(tiny_model(preset), {kEmulatedVocabulary, kEmulatedVocabulary}, *backend, 3, true);
  StepOptions options;
  options.optimizer.learning_rate = 1e-2, options.optimizer.warmup = 5, options.optimizer.epsilon = 1e-5;
  options.label_smoothing = 0.1, options.seed = 17, options.max_steps = kSteps;
  World world = make_local_world();
  Replica replica(*model, options, world);
  Trained trained;
  for (uint64_t step = 0; step < kSteps; ++step) {
    const std::vector<Batch> parts{random_batch(4, kEmulatedVocabulary, 100 + step % 4),
                                   random_batch(2, kEmulatedVocabulary, 200 + step % 4, 4)};
    const StepResult result = replica.step(parts);
    trained.losses.push_back(result.totals.smoothed / result.totals.tokens), trained.norms.push_back(result.gradient_norm);
  }
  trained.parameters = model->parameters().values().to_doubles();
  return trained;
}

class EmulatedTraining : public testing::TestWithParam<const char*> {};

// A mask with one other bit would change a loss by about a hundredth.
TEST_P(EmulatedTraining, TwentyUpdatesInF32AreThoseOfTheProcessor) {
  const Trained card = train(GetParam(), "cuda-emulated:f32"), processor = train(GetParam(), "cpu:f32");
  const double rounding = on_real_card() ? 5 : 1;
  for (size_t i = 0; i < kSteps; ++i) {
    EXPECT_NEAR(card.losses[i], processor.losses[i], rounding * 3e-7 * processor.losses[i]) << "update " << i + 1;
    EXPECT_NEAR(card.norms[i], processor.norms[i], rounding * 2e-6 * processor.norms[i]) << "update " << i + 1;
  }
  EXPECT_LT(processor.losses.back(), 0.9 * processor.losses.front()) << "it learns";
  double difference = 0, squares = 0;
  for (size_t i = 0; i < card.parameters.size(); ++i) {
    difference += std::pow(card.parameters[i] - processor.parameters[i], 2), squares += std::pow(processor.parameters[i], 2);
  }
  EXPECT_LT(std::sqrt(difference / squares), rounding * 3e-6);
}

TEST_P(EmulatedTraining, TwentyUpdatesInBf16StayNearThoseInF32) {
  const Trained card = train(GetParam(), "cuda-emulated:bf16"), processor = train(GetParam(), "cpu:f32");
  for (size_t i = 0; i < kSteps; ++i) EXPECT_NEAR(card.losses[i], processor.losses[i], 0.005 * processor.losses[i]) << "update " << i + 1;
}

INSTANTIATE_TEST_SUITE_P(Models, EmulatedTraining, testing::Values("transformer-tiny", "gnmt-small"),
                         [](const auto& info) { return std::string(info.param).substr(0, 4) == "gnmt" ? "Gnmt" : "Transformer"; });

}  // namespace
}  // namespace starling
