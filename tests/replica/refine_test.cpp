// Refinement: the weights of samples by hand, the estimate of the gradient against the exact one, and whether rewards rise.
#include "replica/refine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "backend/dropout.h"
#include "base/random.h"
#include "base/sha256.h"
#include "data/batches.h"
#include "metrics/metrics.h"
#include "replica/replica.h"
#include "run/trainer.h"
#include "storage/checkpoint.h"
#include "storage/safetensors.h"
#include "tests/run/word_pairs.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

TEST(RefineWeights, AreAdvantagesOverTheSamplesAddedUpOverEqualOnes) {
  const Samples samples{{5, 2}, {6, 2}, {5, 2}, {7, 2}};
  const std::vector<double> rewards{0.8, 0.2, 0.8, 0.4};  // mean 0.55
  const auto mean = weigh_samples(samples, rewards, RewardBaseline::mean);
  ASSERT_EQ(mean.size(), 3u);
  EXPECT_EQ(mean[0].tokens, samples[0]);
  EXPECT_NEAR(mean[0].weight, 2 * 0.25 / 4, 1e-15);
  EXPECT_NEAR(mean[1].weight, -0.35 / 4, 1e-15);
  EXPECT_NEAR(mean[2].weight, -0.15 / 4, 1e-15);
  const auto others = weigh_samples(samples, rewards, RewardBaseline::leave_one_out);
  ASSERT_EQ(others.size(), 3u);
  EXPECT_NEAR(others[0].weight, 2 * (0.8 - (0.2 + 0.8 + 0.4) / 3) / 4, 1e-15);
  EXPECT_NEAR(others[1].weight, (0.2 - (0.8 + 0.8 + 0.4) / 3) / 4, 1e-15);
  EXPECT_NEAR(others[2].weight, (0.4 - (0.8 + 0.2 + 0.8) / 3) / 4, 1e-15);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(mean[i].weight, others[i].weight * 3 / 4, 1e-15);  // (m - 1) / m
}

TEST(RefineWeights, SamplesOfEqualRewardTeachNothing) {
  const Samples samples{{5, 2}, {6, 2}, {5, 2}};
  for (const RewardBaseline baseline : {RewardBaseline::mean, RewardBaseline::leave_one_out})
    EXPECT_TRUE(weigh_samples(samples, std::vector<double>{0.1, 0.1, 0.1}, baseline).empty()) << word(baseline);
}

constexpr int32_t kVocabulary = 5;

std::unique_ptr<Model> tiny_model(Backend& backend, uint64_t seed, const std::string& preset = "transformer-tiny") {
  ModelConfig config = model_preset(preset);
  const bool recurrent = preset.starts_with("gnmt");
  config.encoder_layers = config.decoder_layers = recurrent ? 2 : 1, config.width = 8, config.feed_forward = 8, config.heads = 2;
  config.init_bound = 0.5;
  config.dropout = config.attention_dropout = config.feed_forward_dropout = 0;
  return make_model(config, {kVocabulary, kVocabulary}, backend, seed, true);
}

Batch two_pairs() {
  Batch batch;
  const std::vector<std::vector<int32_t>> sources{{3, 4, 2}, {4, 2}}, targets{{4, 3, 2}, {3, 2}};
  for (size_t i = 0; i < 2; ++i) {
    batch.source.append(sources[i].data(), sources[i].data() + sources[i].size());
    batch.target.append(targets[i].data(), targets[i].data() + targets[i].size());
    batch.sample_ids.push_back(static_cast<int64_t>(40 + i));
  }
  return batch;
}

std::vector<double> gradient(Model& model, const std::vector<Batch>& batches) {
  Arena arena(model.parameters().backend().memory());
  GradientSum sum(model.parameters());
  for (const Batch& batch : batches) {
    arena.release({});
    Tape tape(model.parameters(), arena, sum, 1, 1);
    model.loss(tape, batch, 0);
    tape.backward();
  }
  sum.complete();
  return model.parameters().gradients().to_doubles();
}

// log P of the only pair of a batch.
double log_probability(Model& model, const Batch& batch) {
  Arena arena(model.parameters().backend().memory());
  Tape tape(model.parameters(), arena);
  return -model.loss(tape, batch, 0).read().nll;
}

// Minus the gradient of the expected reward, by enumeration: sum over all outputs of P(Y) r(Y) grad -log P(Y).
std::vector<double> exact_gradient(Model& model, const Batch& pairs, int64_t limit, double& expected_reward) {
  std::vector<Batch> all;
  expected_reward = 0;
  for (size_t b = 0; b < 2; ++b) {
    const auto part = [&](const PackedTokens& side) {
      return std::vector<int32_t>(side.tokens.begin() + side.offsets[b], side.tokens.begin() + side.offsets[b + 1]);
    };
    const std::vector<int32_t> source = part(pairs.source);
    std::vector<int32_t> reference = part(pairs.target);
    reference.pop_back();
    double mass = 0;
    const std::function<void(const std::vector<int32_t>&)> visit = [&](const std::vector<int32_t>& prefix) {
      for (int32_t t = 0; t < kVocabulary; ++t) {
        std::vector<int32_t> longer = prefix;
        longer.push_back(t);
        if (t != 2 && static_cast<int64_t>(longer.size()) < limit) {
          visit(longer);
          continue;
        }
        Batch& batch = all.emplace_back();
        batch.source.append(source.data(), source.data() + source.size());
        batch.target.append(longer.data(), longer.data() + longer.size());
        batch.sample_ids = {0};
        const double p = std::exp(log_probability(model, batch));
        if (t == 2) longer.pop_back();
        const double r = sentence_gleu(longer, reference);
        batch.weights = {static_cast<float>(p * r)};
        mass += p, expected_reward += p * r;
      }
    };
    visit({});
    EXPECT_NEAR(mass, 1, 1e-9);
  }
  return gradient(model, all);
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

class RefineGradient : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Families, RefineGradient, testing::Values("transformer-tiny", "gnmt-small"),
                         [](const auto& info) { return std::string(info.param, 4); });

TEST_P(RefineGradient, ItsMeanIsTheExactGradientOfTheExpectedReward) {
  const auto backend = make_backend("reference", 1);
  const auto model = tiny_model(*backend, 4, GetParam());
  const Batch pairs = two_pairs();
  double expected_reward = 0;
  const std::vector<double> exact = exact_gradient(*model, pairs, 2, expected_reward);
  RefineOptions o;
  o.samples = 4, o.max_length_factor = 0, o.max_length_offset = 2;
  for (const RewardBaseline baseline : of_cases<RewardBaseline>({RewardBaseline::leave_one_out, RewardBaseline::mean}, 1)) {
    o.baseline = baseline;
    constexpr int kUpdates = 1500;
    std::vector<double> sum(exact.size(), 0.0);
    double squares = 0, reward = 0, along = 0, along_squares = 0;
    for (int t = 1; t <= kUpdates; ++t) {
      const Refinement drawn = sample_refinement(*model, pairs, o, 9, t, 6);
      reward += drawn.reward / 4;
      if (drawn.batches.empty()) continue;
      const std::vector<double> g = gradient(*model, drawn.batches);
      for (size_t i = 0; i < g.size(); ++i) sum[i] += g[i];
      const double a = dot(g, exact) / dot(exact, exact);
      squares += dot(g, g), along += a, along_squares += a * a;
    }
    const double factor = baseline == RewardBaseline::mean ? 3.0 / 4 : 1.0;  // (m - 1) / m
    double error = 0;
    for (size_t i = 0; i < exact.size(); ++i) error += std::pow(sum[i] / kUpdates - factor * exact[i], 2);
    const double variance = (squares / kUpdates - factor * factor * dot(exact, exact)) / kUpdates;  // of the mean, summed up
    EXPECT_LT(error, 5 * variance) << word(baseline);  // it is expected to equal the variance; few directions carry it
    EXPECT_LT(variance, 0.002 * dot(exact, exact)) << "too few updates to tell anything";
    const double mean = along / kUpdates, deviation = std::sqrt((along_squares / kUpdates - mean * mean) / kUpdates);
    EXPECT_NEAR(mean, factor, 4 * deviation) << word(baseline);
    EXPECT_LT(deviation, 0.06) << "too few updates to tell one baseline from the other";
    EXPECT_NEAR(reward / kUpdates, expected_reward, 0.05);
  }
}

TEST(RefineSamples, AreTheSameForAnyShareAndMicroBatch) {
  const auto backend = make_backend("reference", 1);
  const auto model = tiny_model(*backend, 4);
  const Batch pairs = two_pairs();
  RefineOptions o;
  const Refinement whole = sample_refinement(*model, pairs, o, 9, 3, 1000);
  ASSERT_EQ(whole.batches.size(), 1u);
  EXPECT_EQ(whole.samples, 30);
  EXPECT_GT(whole.distinct, 2);
  EXPECT_LE(whole.distinct, 30);
  const Refinement small = sample_refinement(*model, pairs, o, 9, 3, 20);
  EXPECT_GT(small.batches.size(), 3u);
  std::vector<int32_t> tokens, split_tokens;
  std::vector<float> weights;
  for (const Batch& b : small.batches) {
    EXPECT_LE(b.target.count(), 20);
    EXPECT_EQ(static_cast<int64_t>(b.weights.size()), b.target.sentences());
    split_tokens.insert(split_tokens.end(), b.target.tokens.begin(), b.target.tokens.end());
    weights.insert(weights.end(), b.weights.begin(), b.weights.end());
  }
  EXPECT_EQ(split_tokens, whole.batches[0].target.tokens);
  EXPECT_EQ(weights, whole.batches[0].weights);
  double reward = 0;
  for (int r = 0; r < 2; ++r) {
    const Refinement part = sample_refinement(*model, slice_for_rank(pairs, r, 2, 1, 1), o, 9, 3, 1000);
    reward += part.reward;
    for (const Batch& b : part.batches) tokens.insert(tokens.end(), b.target.tokens.begin(), b.target.tokens.end());
  }
  EXPECT_EQ(tokens, whole.batches[0].target.tokens);
  EXPECT_NEAR(reward, whole.reward, 1e-12);
  EXPECT_NE(sample_refinement(*model, pairs, o, 9, 4, 1000).batches[0].target.tokens, whole.batches[0].target.tokens);
}

TEST(RefineSamples, OfOneSourceMayBeDrawnInParts) {
  const auto backend = make_backend("reference", 1);
  const auto model = tiny_model(*backend, 4);
  const Batch pairs = two_pairs();
  for (const int64_t offset : {2, 40}) {  // bounded by rows, by tokens
    SamplingOptions s{.samples = 1100, .max_length_factor = 0, .max_length_offset = offset, .key = dropout_key(9, 3, 0x73616d706c65)};
    RefineOptions o;
    o.samples = s.samples, o.max_length_factor = 0, o.max_length_offset = offset;
    const Refinement parts = sample_refinement(*model, pairs, o, 9, 3, 1 << 20);
    EXPECT_EQ(parts.samples, 2200);
    const auto whole = sample_translations(*model, model->vocabulary(), pairs.source, pairs.sample_ids, s);
    std::vector<int32_t> tokens;
    for (size_t b = 0; b < 2; ++b) {
      std::vector<double> rewards;
      const std::vector<int32_t> reference(pairs.target.tokens.begin() + pairs.target.offsets[b],
                                           pairs.target.tokens.begin() + pairs.target.offsets[b + 1] - 1);
      for (std::vector<int32_t> y : whole[b]) {
        if (y.back() == 2) y.pop_back();
        rewards.push_back(sentence_gleu(y, reference));
      }
      for (const WeightedSample& w : weigh_samples(whole[b], rewards, o.baseline))
        tokens.insert(tokens.end(), w.tokens.begin(), w.tokens.end());
    }
    ASSERT_EQ(parts.batches.size(), 1u);
    EXPECT_EQ(parts.batches[0].target.tokens, tokens) << offset;
  }
}

// Updates on samples alone, without any likelihood.
class RefineTraining : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Families, RefineTraining, testing::Values("transformer-tiny", "gnmt-small"),
                         [](const auto& info) { return std::string(info.param, 4); });

TEST_P(RefineTraining, RaisesTheExpectedReward) {
  const auto backend = make_backend("cpu:f32", 1);
  const auto model = tiny_model(*backend, 4, GetParam());
  World world = make_local_world();
  StepOptions options;
  options.label_smoothing = 0, options.optimizer.warmup = 0, options.optimizer.schedule = RateSchedule::constant;
  options.optimizer.learning_rate = 0.004, options.optimizer.loss_normalization = LossNormalization::sentences;
  Replica replica(*model, options, world);
  Batch pairs = two_pairs();
  pairs.weights = {0, 0};
  RefineOptions o;
  o.max_length_factor = 1, o.max_length_offset = 2;
  std::vector<double> rewards;
  for (int t = 1; t <= 250; ++t) {
    const Refinement drawn = sample_refinement(*model, pairs, o, 9, t, 1000);
    const StepResult result = replica.step({&pairs, 1}, {}, drawn);
    EXPECT_EQ(result.totals.tokens, 5);  // of the references
    EXPECT_EQ(result.totals.sentences, 2);
    rewards.push_back(result.totals.reward / result.totals.samples);
  }
  double early = 0, late = 0;
  for (size_t i = 0; i < 10; ++i) early += rewards[i] / 10, late += rewards[rewards.size() - 1 - i] / 10;
  // The same translation for both sources can have 2/3: as far as a recurrent model this small comes.
  EXPECT_LT(early, 0.2);
  EXPECT_GT(late, std::string(GetParam()) == "gnmt-small" ? 0.6 : 0.9);
}

namespace fs = std::filesystem;

class RefineRun : public testing::Test {
 protected:
  RefineRun()
      : directory_(fs::temp_directory_path() / ("starling-refine-" + std::to_string(::getpid()) + "-" +
                                                testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(directory_);
    write_word_pairs(path("a"), path("b"), 200, 6, 1, 4);
  }
  ~RefineRun() override { fs::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  Config config(const std::string& run) const {
    Config c = parse_config("model:\n  preset: transformer-tiny\n  width: 32\n  feed-forward: 64\n", "test");
    c.data.train = {{path("a"), path("b"), "", 1}};
    c.vocab.training.size = 40;
    c.train.output = path(run);
    c.train.batch_tokens = 100, c.train.max_steps = 10, c.train.threads = 1, c.train.precision = "f32";
    c.train.optimizer.warmup = 10, c.train.optimizer.learning_rate = 3e-3;
    c.checkpoint.every = 100, c.log.progress = "never", c.log.every = 5;
    return c;
  }
  Config mixed(const std::string& run) const {
    Config c = config(run);
    c.train.objective = Objective::mixed, c.train.initial_model = path("first"), c.refine.samples = 4;
    return c;
  }
  std::string hash(const std::string& run, const std::string& file) const {
    return sha256_file(*real_file_system(), path(run) + "/checkpoints/step-00000010/" + file);
  }
  std::string log(const std::string& run) const {
    std::ifstream file(path(run) + "/train.log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string error(const Config& c) {
    try {
      run_training(c);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "no error";
  }

  fs::path directory_;
};

TEST_F(RefineRun, StartsFromAModelRefinesAndContinuesBitForBit) {
  EXPECT_EQ(run_training(config("first")), 0);
  EXPECT_EQ(run_training(mixed("whole")), 0);
  const std::string told = log("whole");
  for (const char* text :
       {"weights and vocabulary from ", "objective: expected GLEU of 4 samples per source sentence (baseline leave-one-out) + 0.017",
        "| reward 0.", "| distinct "})
    EXPECT_NE(told.find(text), std::string::npos) << text << " is not in\n" << told;
  for (const int64_t stop : {3, 4, 10}) {
    Config c = mixed("parts");
    c.train.max_steps = stop;
    EXPECT_EQ(run_training(c), 0);
    if (stop == 3) fs::rename(path("first"), path("moved"));  // only a new run needs it
  }
  for (const char* file : {"model.safetensors", "rank-0.safetensors"}) EXPECT_EQ(hash("whole", file), hash("parts", file)) << file;
}

TEST_F(RefineRun, TheInitialModelGivesItsWeightsAndItsVocabulary) {
  EXPECT_EQ(run_training(config("first")), 0);
  Config c = mixed("still");
  c.train.optimizer.learning_rate = 0, c.train.optimizer.ema = 0.9;  // nothing moves
  EXPECT_EQ(run_training(c), 0);
  const auto files = real_file_system();
  const SafetensorsFile a(*files, path("first") + "/checkpoints/step-00000010/model.safetensors"),
      b(*files, path("still") + "/checkpoints/step-00000010/model.safetensors");
  const auto& before = a.at("embedding").data;
  const auto& after = b.at("embedding").data;
  ASSERT_EQ(before.size(), after.size());
  std::vector<float> x(before.size() / 4), y(x.size());
  std::memcpy(x.data(), before.data(), before.size()), std::memcpy(y.data(), after.data(), after.size());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-6) << i;  // the moving average rounds
  EXPECT_EQ(hash("first", "vocab.spm"), hash("still", "vocab.spm"));
}

TEST_F(RefineRun, TheInitialModelIsValidatedOnceAndIsTheFirstBest) {
  EXPECT_EQ(run_training(config("first")), 0);
  Config c = mixed("next");
  c.valid.source = path("a"), c.valid.target = path("b"), c.valid.metrics = {"cross-entropy"}, c.valid.every = 5;
  c.train.optimizer.optimizer = OptimizerKind::sgd, c.train.optimizer.warmup = 0, c.train.optimizer.schedule = RateSchedule::constant;
  c.train.optimizer.learning_rate = 50, c.train.max_steps = 5;  // does harm
  EXPECT_EQ(run_training(c), 0);
  const auto count = [&](const std::string& text) {
    const std::string told = log("next");
    int n = 0;
    for (size_t at = told.find(text); at != std::string::npos; at = told.find(text, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("[valid] step 0 | epoch 1 | cross-entropy"), 1) << log("next");
  const std::string best = path("next") + "/best/model.safetensors";
  const auto files = real_file_system();
  const SafetensorsFile a(*files, path("first") + "/checkpoints/step-00000010/model.safetensors"), b(*files, best);
  const auto &before = a.at("embedding").data, &kept = b.at("embedding").data;
  EXPECT_TRUE(std::equal(before.begin(), before.end(), kept.begin(), kept.end()));
  c.train.max_steps = 10;
  EXPECT_EQ(run_training(c), 0);
  EXPECT_EQ(count("[valid] step 0 "), 1) << log("next");
  EXPECT_EQ(count("[valid] step "), 3) << log("next");
  EXPECT_EQ(count("best cross-entropy"), 1 + 2) << log("next");  // new once; the end of each run names it
  EXPECT_EQ(count("at update 0"), 2) << log("next");
}

TEST_F(RefineRun, WhatIsRarelyMeantIsSaid) {
  Config c = mixed("blind");
  c.train.initial_model = "", c.train.max_steps = 1, c.train.optimizer.sgd_after = 1;
  EXPECT_EQ(run_training(c), 0);
  for (const char* text : {"there is dropout", "from random weights", "sgd-after 1 is not reached"})
    EXPECT_NE(log("blind").find(text), std::string::npos) << text << " is not in\n" << log("blind");
  Config first = config("first");
  first.model = model_preset("gnmt-small");
  first.model.width = 16, first.model.encoder_layers = first.model.decoder_layers = 2;
  first.model.dropout = 0, first.model.clip = 1, first.train.clip_start = 2, first.train.max_steps = 2;
  EXPECT_EQ(run_training(first), 0);
  c = mixed("annealed");
  c.model = first.model, c.train.clip_start = 2, c.train.max_steps = 2;
  EXPECT_EQ(run_training(c), 0);
  EXPECT_NE(log("annealed").find("bounds its states by 1, but this run begins with 2"), std::string::npos) << log("annealed");
  EXPECT_EQ(log("annealed").find("there is dropout"), std::string::npos) << log("annealed");
  c.train.output = path("kept"), c.train.clip_start = 1, c.train.optimizer.warmup = 1;
  EXPECT_EQ(run_training(c), 0);
  EXPECT_EQ(log("kept").find("warning"), std::string::npos) << log("kept");
  first.train.output = path("unbounded"), first.model.clip = first.train.clip_start = 0;
  EXPECT_EQ(run_training(first), 0);
  c.train.output = path("bounded"), c.train.initial_model = path("unbounded");
  EXPECT_EQ(run_training(c), 0);
  EXPECT_NE(log("bounded").find("are not bounded, but this run bounds them by 1"), std::string::npos) << log("bounded");
}

TEST_F(RefineRun, AModelThatDoesNotFitIsRefused) {
  EXPECT_EQ(run_training(config("first")), 0);
  Config c = mixed("other");
  c.model.width = 16;
  EXPECT_NE(error(c).find("train.initial-model names another model"), std::string::npos) << error(c);
  EXPECT_NE(error(c).find("preset: transformer-tiny"), std::string::npos) << error(c);
  EXPECT_EQ(error(c).find("start afresh"), std::string::npos) << error(c);
  Config tied = config("tied");
  tied.model.tied_embeddings = TiedEmbeddings::decoder, tied.train.max_steps = 1;
  EXPECT_EQ(run_training(tied), 0);
  c = mixed("other");
  c.train.initial_model = path("tied"), c.vocab.joint = false, c.model.tied_embeddings = TiedEmbeddings::decoder;
  EXPECT_NE(error(c).find("set vocab.joint to true"), std::string::npos) << error(c);
  c = mixed("other");
  c.model.init_bound = 0.01;  // of no matter
  c.vocab.source = path("other.spm");
  EXPECT_EQ(run_training(c), 0);  // it is written there
  Config second = config("second");
  second.vocab.training.type = "bpe";
  EXPECT_EQ(run_training(second), 0);
  c = mixed("third");
  c.vocab.source = path("second") + "/vocab.spm";
  EXPECT_NE(error(c).find("is not the vocabulary of train.initial-model"), std::string::npos) << error(c);
  c = mixed("fourth");
  c.train.initial_model = path("nowhere");
  EXPECT_NE(error(c).find("neither a model directory"), std::string::npos) << error(c);
}

}  // namespace
}  // namespace starling
