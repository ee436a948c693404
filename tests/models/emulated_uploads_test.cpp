// What a pass in training sends to an emulated card.
#include <gtest/gtest.h>

#include "tests/card/real_card.h"
#include "tests/emulated/emulator.h"
#include "tests/models/common.h"

namespace starling {
namespace {

// Tokens, places and offsets of both sides go in one transfer, and the keys of their dropout masks in another: pinned buffers are few, and
// the host waits for the pass that used one before.
TEST(EmulatedUploads, APassSendsItsListsTogether) {
  if (on_real_card()) GTEST_SKIP() << "a real card does not count its calls";
  const auto backend = make_backend("cuda-emulated:f32", 1);
  ModelConfig config = model_preset("transformer-tiny");
  config.encoder_layers = config.decoder_layers = 1;
  const auto model = make_model(config, {50, 50}, *backend, 7, true);
  Arena arena(backend->memory());
  GradientSum sum(model->parameters());
  const auto uploads = [&](const Batch& batch) {
    arena.release({});
    Tape tape(model->parameters(), arena, sum, 11, 5);
    const int64_t before = emulated_cuda::calls().uploads;
    model->loss(tape, batch, 0.1);
    return emulated_cuda::calls().uploads - before;
  };
  Batch batch = random_batch(4, 50, 2);
  uploads(batch);  // the first also sends what later ones find there
  EXPECT_EQ(uploads(batch), 2);
  batch.weights.assign(batch.sample_ids.size(), 0.5f);
  EXPECT_EQ(uploads(batch), 3);
}

}  // namespace
}  // namespace starling
