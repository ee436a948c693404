// What belongs to one pass through a model belongs to no other: passes can be alive at once, and masks depend on names alone.
#include <gtest/gtest.h>

#include "backend/dropout.h"
#include "backend/meta.h"
#include "tests/models/common.h"

namespace starling {
namespace {

class Passes : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  Passes() : backend_(make_backend("reference")), model_(make_model(tiny(2), {13, 13}, *backend_, 7, true)) {}
  static ModelConfig tiny(int64_t layers) {
    const auto [preset, tied] = GetParam();
    ModelConfig config = model_preset(preset);
    config.width = 8, config.feed_forward = 12, config.heads = 2, config.dropout = 0.2;
    config.encoder_layers = config.decoder_layers = layers;
    config.tied_embeddings = from_word<TiedEmbeddings>(tied);
    return config;
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

// A memory that keeps nothing, but counts what it is sent; and a backend that has it.
class CountingMemory : public Memory {
 public:
  bool host() const override { return false; }
  std::byte* allocate(int64_t) override { return nullptr; }
  void release(std::byte*, int64_t) override {}
  void zero(std::byte*, int64_t) override {}
  void copy(std::byte*, const std::byte*, int64_t) override {}
  void upload(std::byte*, const std::byte*, int64_t) override { ++uploads; }
  void download(std::byte*, const std::byte*, int64_t) override { FAIL() << "somebody waits"; }
  int uploads = 0;
};
class CountingBackend : public MetaBackend {
 public:
  CountingBackend() : MetaBackend(DType::f32, DType::f32) {}
  Memory& memory() const override { return memory_; }
  int uploads() const { return memory_.uploads; }

 private:
  mutable CountingMemory memory_;
};

TEST_P(Passes, NumbersAreUploadedOnceHoweverDeepTheModel) {
  const auto uploads = [](int64_t layers) {
    CountingBackend backend;
    const auto model = make_model(tiny(layers), {13, 13}, backend, 7, true);
    GradientSum sum(model->parameters());
    Arena arena(backend.memory());
    Tape tape(model->parameters(), arena, sum, 11, 5);
    const int before = backend.uploads();
    model->loss(tape, random_batch(4, 13, 2), 0.1);  // which is gone before the backward pass
    tape.backward();
    return backend.uploads() - before;
  };
  EXPECT_GT(uploads(2), 1);
  EXPECT_EQ(uploads(2), uploads(5));
}

INSTANTIATE_TEST_SUITE_P(All, Passes, testing::Combine(testing::Values("transformer-tiny", "gnmt-small"), testing::Values("all", "none")));

TEST(DropoutSites, MasksDependOnTheNameAlone) {
  const auto backend = make_backend("reference");
  ParameterStore store(*backend);
  store.add("w", {2, 2}, {});
  store.allocate(1, true);
  GradientSum sum(store);
  Arena arena(backend->memory());
  Tape whole(store, arena, sum, 3, 4), part(store, arena, sum, 3, 4), next(store, arena, sum, 3, 5);
  const DropoutSite first("encoder.0.residual"), second("encoder.1.residual");
  const Dropout a = whole.dropout(0.1, first, {}), b = whole.dropout(0.1, second, {});
  EXPECT_NE(a.key, b.key);
  EXPECT_EQ(part.dropout(0.1, second, {}).key, b.key) << "of a pass that has only the later part of the model";
  EXPECT_NE(next.dropout(0.1, second, {}).key, b.key) << "of another update";
  EXPECT_THROW(whole.dropout(0.1, first, {}), Error) << "two uses would drop the same elements";
  // FNV-1a of the name, as published; then SplitMix64's finaliser of seed, update and site.
  EXPECT_EQ(DropoutSite("foobar").key, 0x85944171f73967e8u);
  EXPECT_EQ(b.key, dropout_key(3, 4, second.key));
}

// What owners have updated comes back later. Reading it before is an error, not a wait in disguise: all ranks must wait at one place.
TEST(ParametersOnTheirWay, AreWaitedForAndNotRead) {
  const auto backend = make_backend("reference");
  ParameterStore store(*backend);
  store.add("w", {2, 3}, {});
  store.allocate(1, true);
  const int64_t elements = store.values().count();
  EXPECT_FALSE(store.expects());
  store.wait_for_parameters();  // nothing to wait for
  int waits = 0;
  std::vector<size_t> units;
  store.expect({[&] {
                  ++waits;
                  store.expect({});
                },
                [&](size_t unit) { units.push_back(unit); }});
  EXPECT_TRUE(store.expects());
  EXPECT_THROW(store.values(), InternalError);
  EXPECT_EQ(store.flat_count(), elements);
  EXPECT_EQ(waits, 0);
  store.arrive(3);
  EXPECT_EQ(units, std::vector<size_t>{3});
  EXPECT_THROW(store.values(), InternalError) << "one unit has come, not all";
  store.reach(3);  // nobody waits unit by unit
  EXPECT_EQ(waits, 1);
  EXPECT_EQ(store.values().count(), elements);
  store.wait_for_parameters();
  EXPECT_EQ(waits, 1);
}

}  // namespace
}  // namespace starling
