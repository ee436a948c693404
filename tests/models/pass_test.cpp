// What belongs to one pass through a model belongs to no other: passes can be alive at once, and masks depend on names alone.
#include <gtest/gtest.h>

#include "backend/dropout.h"
#include "tests/models/common.h"

namespace starling {
namespace {

class Passes : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  Passes() : backend_(make_backend("reference")) {
    const auto [preset, tied] = GetParam();
    ModelConfig config = model_preset(preset);
    config.width = 8, config.feed_forward = 12, config.heads = 2, config.dropout = 0.2;
    config.encoder_layers = config.decoder_layers = 2;
    config.tied_embeddings = tied;
    model_ = make_model(config, {13, 13}, *backend_, 7, true);
  }
  std::vector<double> gradient() const { return model_->parameters().gradients().to_doubles(); }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
};

// A forward, B forward, then their backward passes in either order: the same gradient as one after the other, and each pass says once of
// each parameter that it has added all that it adds.
TEST_P(Passes, TwoCanBeAliveAtOnce) {
  const Batch batches[] = {random_batch(4, 13, 2), random_batch(3, 13, 3)};
  ParameterStore& parameters = model_->parameters();
  GradientSum sum(parameters);
  {
    Arena arena(parameters.backend().memory());
    for (const Batch& batch : batches) {
      Tape tape(parameters, arena, sum, 11, 5);
      model_->loss(tape, batch, 0.1);
      tape.backward();
    }
    sum.complete();
  }
  const std::vector<double> expected = gradient();
  for (const bool first_in_first_out : {true, false}) {
    sum.begin();
    Memory& memory = parameters.backend().memory();
    Arena arenas[] = {Arena(memory), Arena(memory)};
    std::vector<int> complete[2];
    std::vector<std::unique_ptr<Tape>> tapes;
    for (size_t i = 0; i < 2; ++i) {
      complete[i].resize(parameters.all().size());
      tapes.push_back(std::make_unique<Tape>(parameters, arenas[i], sum, 11, 5));
      tapes[i]->on_gradient_ready = [&, i](const Parameter& p) { ++complete[i][p.index]; };
      model_->loss(*tapes[i], batches[i], 0.1);
    }
    for (size_t i = 0; i < 2; ++i) tapes[first_in_first_out ? i : 1 - i]->backward();
    sum.complete();
    const std::vector<double> actual = gradient();
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-12) << i;
    for (const auto& counts : complete)
      for (const Parameter& p : parameters.all()) EXPECT_EQ(counts[p.index], 1) << p.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Passes, testing::Combine(testing::Values("transformer-tiny", "gnmt-small"), testing::Values("all", "none")));

TEST(DropoutSites, MasksDependOnTheNameAlone) {
  const auto backend = make_backend("reference");
  ParameterStore store(*backend);
  store.add("w", {2, 2}, {});
  store.allocate(1, true);
  GradientSum sum(store);
  Arena arena(backend->memory());
  RowKeys rows;
  Tape whole(store, arena, sum, 3, 4), part(store, arena, sum, 3, 4), next(store, arena, sum, 3, 5);
  const DropoutSite first("encoder.0.residual"), second("encoder.1.residual");
  const Dropout a = whole.dropout(0.1, first, &rows), b = whole.dropout(0.1, second, &rows);
  EXPECT_NE(a.key, b.key);
  EXPECT_EQ(part.dropout(0.1, second, &rows).key, b.key) << "of a pass that has only the later part of the model";
  EXPECT_NE(next.dropout(0.1, second, &rows).key, b.key) << "of another update";
  EXPECT_THROW(whole.dropout(0.1, first, &rows), Error) << "two uses would drop the same elements";
  // FNV-1a of the name, as published; then SplitMix64's finaliser of seed, update and site.
  EXPECT_EQ(DropoutSite("foobar").key, 0x85944171f73967e8u);
  EXPECT_EQ(b.key, dropout_key(3, 4, second.key));
}

}  // namespace
}  // namespace starling
