// R-Drop: what is computed of a batch, its gradient in whole models, and runs that begin with it half way.
#include "replica/r_drop.h"

#include <csignal>
#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "base/text_files.h"
#include "data/batches.h"
#include "replica/replica.h"
#include "tests/models/common.h"
#include "tests/run/word_run.h"

namespace starling {
namespace {

using testing::HasSubstr;

TEST(DoubledBatch, HasEachSentenceTwiceSideBySideWithOtherMasks) {
  Batch batch = random_batch(3, 20, 1);
  batch.epoch = 4, batch.index = 7;
  Batch twice = doubled(batch, 3);
  EXPECT_EQ(twice.r_drop, 3);
  EXPECT_EQ(twice.epoch, 4);
  EXPECT_EQ(twice.index, 7);
  EXPECT_EQ(twice.weights, std::vector<float>(6, 0.5f));
  const auto sentence = [](const PackedTokens& side, size_t b) {
    return std::vector<int32_t>(side.tokens.begin() + side.offsets[b], side.tokens.begin() + side.offsets[b + 1]);
  };
  std::set<uint32_t> keys;
  ASSERT_EQ(twice.source.sentences(), 6);
  ASSERT_EQ(twice.target.sentences(), 6);
  for (size_t b = 0; b < 6; ++b) {
    EXPECT_EQ(sentence(twice.source, b), sentence(batch.source, b / 2));
    EXPECT_EQ(sentence(twice.target, b), sentence(batch.target, b / 2));
    keys.insert(static_cast<uint32_t>(twice.sample_ids[b]));                // what a mask knows of it
    EXPECT_EQ(twice.sample_ids[b] == batch.sample_ids[b / 2], b % 2 == 0);  // the mask without R-Drop
  }
  EXPECT_EQ(keys.size(), 6u);
  batch.guide = 2, batch.links = {{0, 0}, {1, 0}, {2, 1}}, batch.link_offsets = {0, 2, 2, 3};
  const Batch linked = doubled(batch, 3);
  EXPECT_EQ(linked.guide, 2);
  EXPECT_EQ(linked.link_offsets, (std::vector<int32_t>{0, 2, 4, 4, 4, 5, 6}));
  EXPECT_EQ(linked.links[3], (TokenLink{1, 0}));
  batch.weights = {1, 3, 0};
  EXPECT_EQ(doubled(batch, 3).weights, (std::vector<float>{0.5f, 0.5f, 1.5f, 1.5f, 0, 0}));
}

class RDropModels : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Model> model(double dropout, double clip = 0) {
    ModelConfig config = model_preset(GetParam());
    const bool recurrent = architecture_of(GetParam()) == Architecture::gnmt;
    config.width = 8, config.feed_forward = 12, config.heads = 2, config.init_bound = 0.5;
    config.encoder_layers = config.decoder_layers = recurrent ? 3 : 2, config.dropout = dropout;
    config.attention_dropout = config.feed_forward_dropout = recurrent ? 0 : dropout;
    if (recurrent) config.clip = clip;
    return make_model(config, {13, 13}, *backend_, 7, true);
  }
  // Each sentence of another length or of the same, so that rows in order of time and of sentences differ.
  const Batch batch_ = random_batch(6, 13, 2);
  std::unique_ptr<Backend> backend_ = make_backend("reference");
};
INSTANTIATE_TEST_SUITE_P(Families, RDropModels, testing::Values("transformer-tiny", "gnmt-small"),
                         [](const auto& info) { return std::string(info.param, 4); });

TEST_P(RDropModels, TheGradientMatchesCentralDifferences) {
  Batch weighted = random_batch(3, 13, 2, 4);
  expect_gradients(*model(0.2), doubled(weighted, 5), 50);
  weighted.weights = {1, 0.5f, 2};
  expect_gradients(*model(0.2, 1), doubled(weighted, 2), 50);
}

// Where nothing is dropped both passes are the same: a row that met another's would show.
TEST_P(RDropModels, RowsMeetThoseOfTheirOwnPlace) {
  EXPECT_NEAR(run(*model(0), doubled(batch_, 5), true).consistency, 0, 1e-12);
  EXPECT_GT(run(*model(0.3), doubled(batch_, 5), true).consistency, 0.01);
}

TEST_P(RDropModels, WithoutItsTermItIsTheMeanOfTwoPasses) {
  const auto own = model(0.2);
  Batch second = batch_;
  for (int64_t& id : second.sample_ids) id += int64_t{1} << 31;
  std::vector<double> mean;
  double smoothed = 0, nll = 0;
  for (const Batch& batch : {batch_, second}) {
    const LossSums sums = run(*own, batch, true);
    smoothed += sums.smoothed / 2, nll += sums.nll;
    const std::vector<double> gradient = own->parameters().gradients().to_doubles();
    mean.resize(gradient.size());
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += gradient[i] / 2;
  }
  const LossSums both = run(*own, doubled(batch_, 1e-12), true);
  EXPECT_NEAR(both.smoothed, smoothed, 1e-9);
  EXPECT_NEAR(both.nll, nll, 1e-9);
  EXPECT_EQ(both.tokens, 2 * batch_.target.count());
  const std::vector<double> gradient = own->parameters().gradients().to_doubles();
  for (size_t i = 0; i < mean.size(); ++i) ASSERT_NEAR(gradient[i], mean[i], 1e-9) << i;
}

// Sums of a step are of the text, so that learning rates and logs mean what they do without R-Drop; micro-batches change nothing.
TEST_P(RDropModels, AStepCountsTheTextAndDoesNotDependOnMicroBatches) {
  std::vector<std::vector<double>> gradients;
  for (const int64_t tokens : {1000, 12}) {
    const auto own = model(0.2);
    const LossSums expected = run(*own, doubled(batch_, 5), true);
    World world = make_local_world();
    StepOptions options;
    options.r_drop = 5, options.r_drop_from = 0.5, options.max_steps = 2, options.seed = 11, options.optimizer.learning_rate = 0;
    Replica replica(*own, options, world);
    for (const int update : {1, 2}) {
      const std::vector<Batch> parts = split(batch_, tokens);
      const StepTotals totals = replica.step(parts).totals;
      EXPECT_EQ(parts.size() > 1, tokens == 12);
      EXPECT_EQ(totals.tokens, batch_.target.count());
      EXPECT_EQ(totals.source_tokens, batch_.source.count());
      EXPECT_EQ(totals.sentences, 6);
      EXPECT_EQ(totals.consistency > 0, update == 2);            // the first half is without it
      EXPECT_NEAR(totals.smoothed / expected.smoothed, 1, 0.2);  // with other masks
      gradients.push_back(own->parameters().gradients().to_doubles());
    }
  }
  for (const size_t update : {0, 1})
    for (size_t i = 0; i < gradients[0].size(); ++i) ASSERT_NEAR(gradients[update][i], gradients[2 + update][i], 1e-9) << i;
}

// Of parts of a batch that count as the text does, too. Without dropout both passes have the gradient of one.
TEST_P(RDropModels, TheNoiseScaleIsThatOfTheText) {
  std::vector<NoiseSample> samples;
  for (const double r_drop : {0.0, 1.0}) {
    const auto own = model(0);
    World world = make_local_world();
    StepOptions options;
    options.r_drop = r_drop;
    Replica replica(*own, options, world);
    samples.push_back(replica.step(split(batch_, 12)).noise);
  }
  EXPECT_TRUE(samples[0].known && samples[1].known);
  EXPECT_NEAR(samples[1].variance / samples[0].variance, 1, 1e-9);
  EXPECT_NEAR(samples[1].signal / samples[0].signal, 1, 1e-9);
}

class RDropRun : public WordRunTest {
 protected:
  std::string hash(const std::string& run, const std::string& file) const {
    return sha256_file(*real_file_system(), path(run) + "/checkpoints/step-00000008/" + file);
  }
};

TEST_F(RDropRun, ARunThatBeginsWithItHalfWayIsContinuedBitForBit) {
  for (const char* preset : {"transformer-tiny", "gnmt-small"}) {
    const auto with = [&](const std::string& run) {
      Config c = config(run, {{"train.r-drop", "3"}, {"train.r-drop-from", "0.5"}, {"train.max-steps", "8"}, {"log.every", "1"}});
      if (architecture_of(preset) == Architecture::gnmt) c.model = model_preset(preset), c.model.width = 16;
      c.model.dropout = 0.2, c.train.optimizer.learning_rate = 0.02, c.train.optimizer.warmup = 2;
      return c;
    };
    const std::string whole = std::string("whole-") + preset, parts = std::string("parts-") + preset;
    EXPECT_EQ(run_training(with(whole)), 0);
    for (const int64_t stop : {3, 6, 8}) {
      TrainingWatch watch;
      watch.updated = [&](int64_t step, int64_t, int64_t) {
        if (step == stop && stop < 8) std::raise(SIGTERM);
      };
      World world = make_local_world();
      EXPECT_EQ(run_training(with(parts), world, watch), stop < 8 ? 128 + SIGTERM : 0);
    }
    for (const char* file : {"model.safetensors", "rank-0.safetensors"})
      EXPECT_EQ(hash(whole, file), hash(parts, file)) << preset << " " << file;
    EXPECT_THAT(read_text_file(path(parts) + "/train.log"), HasSubstr("from update 5 on each sentence is passed twice, train.r-drop 3"));
    std::ifstream events(path(whole) + "/events.jsonl");
    std::vector<bool> told;
    for (std::string line; std::getline(events, line);)
      if (const auto event = nlohmann::json::parse(line); event["type"] == "report") {
        told.push_back(event.contains("consistency"));
        EXPECT_EQ(told.back(), event.value("consistency", 0.0) > 1e-4);
      }
    EXPECT_EQ(told, (std::vector<bool>{false, false, false, false, true, true, true, true})) << preset;
  }
}

}  // namespace
}  // namespace starling
