// The whole Transformer: gradients by central differences in double precision, packing, dropout keys, cached decoding, backends.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/common.h"

namespace starling {
namespace {

ModelConfig tiny(const std::string& norm, const std::string& tied) {
  ModelConfig c = model_preset("transformer-tiny");
  c.encoder_layers = c.decoder_layers = 2, c.width = 8, c.feed_forward = 16, c.heads = 2;
  c.norm = from_word<NormPlace>(norm), c.tied_embeddings = from_word<TiedEmbeddings>(tied), c.dropout = 0.1, c.attention_dropout = 0.1,
  c.feed_forward_dropout = 0.1;
  return c;
}

// With all that models of other programs have and ours do not by default.
ModelConfig foreign(const std::string& norm, Autoregression autoregression, Activation activation) {
  ModelConfig c = tiny(norm, "all");
  c.autoregression = autoregression, c.activation = activation, c.decoder_start = DecoderStart::zero, c.output_bias = true;
  c.norm_epsilon = 1e-6;
  return c;
}

// Learnt positions, and sentences that are framed in another way.
ModelConfig placed(const std::string& norm, int64_t first) {
  ModelConfig c = tiny(norm, "none");
  c.position_table = 20, c.first_position = first, c.source_end = false, c.decoder_start = DecoderStart::end, c.embedding_scale = 1.5;
  return c;
}

// Relative positions, fewer and more of them than sentences are long.
ModelConfig related(const std::string& norm, int64_t reach) {
  ModelConfig c = tiny(norm, "all");
  c.relative_positions = reach;
  return c;
}

class GradientCheck : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(GradientCheck, WholeModelMatchesCentralDifferences) {
  const auto [norm, tied] = GetParam();
  const auto backend = make_backend("reference");
  const ModelVocabulary vocabulary{13, 13};
  const auto model = make_model(tiny(norm, tied), vocabulary, *backend, 7, true);
  const Batch batch = random_batch(4, 13, 1);
  expect_gradients(*model, batch);
}

INSTANTIATE_TEST_SUITE_P(Variants, GradientCheck,
                         testing::Values(std::pair("pre", "all"), std::pair("pre", "none"), std::pair("post", "decoder"),
                                         std::pair("post", "all")),
                         [](const auto& info) { return std::string(info.param.first) + "_" + info.param.second; });

TEST(GradientCheck, ForeignModelsMatchCentralDifferences) {
  const auto backend = make_backend("reference");
  for (const ModelConfig& config :
       {foreign("post", Autoregression::ssru, Activation::swish), foreign("pre", Autoregression::ssru, Activation::gelu),
        foreign("post", Autoregression::self_attention, Activation::gelu_tanh), placed("pre", 2), related("post", 2)}) {
    const auto model = make_model(config, {13, 13, config.relative_positions > 0 ? 1 : -1}, *backend, 7, true);
    expect_gradients(*model, random_batch(4, 13, 1));
  }
}

// Links at random: some tokens have several, some none, a sentence has none at all, and some are with the source's end.
Batch guided_batch(uint64_t seed) {
  Batch batch = random_batch(4, 13, seed);
  batch.guide = 0.7;
  batch.link_offsets = {0};
  Random random(seed, 9);
  for (size_t b = 0; b < 4; ++b) {
    const auto length = [&](const PackedTokens& side) { return static_cast<uint16_t>(side.offsets[b + 1] - side.offsets[b]); };
    for (uint16_t t = 0; t < length(batch.target) && b != 2; ++t)
      for (uint16_t s = 0; s < length(batch.source); ++s)
        if (random.below(3) == 0) batch.links.push_back({s, t});
    batch.link_offsets.push_back(static_cast<int32_t>(batch.links.size()));
  }
  return batch;
}

TEST(GradientCheck, GuidedAttentionMatchesCentralDifferences) {
  const auto backend = make_backend("reference");
  for (const bool weighted : {false, true})
    for (const bool end : {true, false}) {
      ModelConfig config = tiny("pre", "all");
      config.source_end = end, config.alignment_layer = end ? 0 : 2, config.alignment_head = weighted ? 2 : 1;
      const auto model = make_model(config, {13, 13}, *backend, 7, true);
      Batch batch = guided_batch(3);
      if (weighted) batch.weights = {0.5f, 2, 1, 1};
      const double whole = run(*model, batch, true).alignment;
      EXPECT_GT(whole, 0);
      // A weighted batch reports the unweighted likelihood beside the weighted objective, which is what is differentiated.
      expect_gradients(*model, batch);
      batch.guide = 0;
      EXPECT_EQ(run(*model, batch, true).alignment, 0);
    }
}

// The mean of the heads' weights is what a model that has chosen none gives.
TEST(Transformer, TheAttentionOfOneHeadIsItsPartOfTheMean) {
  const auto backend = make_backend("cpu:f32", 1);
  std::vector<std::vector<double>> weights;
  const Batch batch = random_batch(3, 30, 9, 12);
  for (const int64_t head : {0, 1, 2}) {
    ModelConfig config = tiny("pre", "all");
    config.alignment_layer = 2, config.alignment_head = head;
    const auto model = make_model(config, {30, 30}, *backend, 3, false);
    const auto state = model->begin_decoding();
    const std::vector<int32_t> sentence = model->encode(*state, batch.source), begin(3, model->vocabulary().begin), none(3, -1);
    Tensor attention;
    model->next_output(*state, begin, sentence, none, &attention);
    weights.push_back(attention.to_doubles());
  }
  ASSERT_EQ(weights[0].size(), static_cast<size_t>(batch.source.count()));
  double apart = 0;
  for (size_t i = 0; i < weights[0].size(); ++i) {
    EXPECT_NEAR(weights[0][i], (weights[1][i] + weights[2][i]) / 2, 1e-6);
    apart = std::max(apart, std::abs(weights[1][i] - weights[2][i]));
  }
  EXPECT_GT(apart, 1e-3);
}

// The first input of the decoder is no token of the vocabulary.
TEST(Transformer, AZeroStartNeedsNoToken) {
  const auto backend = make_backend("cpu:f32", 1);
  const auto model = make_model(foreign("post", Autoregression::self_attention, Activation::relu), {30, 30, -1}, *backend, 3, false);
  EXPECT_EQ(model->vocabulary().begin, kZeroEmbedding);
  EXPECT_THROW(make_model(tiny("post", "all"), {30, 30, -1}, *backend, 3, false), ConfigError);
}

// Sinusoids that begin later, and a table of the same rows.
TEST(Transformer, ATableOfSinusoidsIsTheSameModel) {
  const auto backend = make_backend("cpu:f32", 1);
  ModelConfig computed = tiny("pre", "none"), stored = computed;
  computed.first_position = 2;
  stored.position_table = 20;
  const auto a = make_model(computed, {30, 30}, *backend, 3, false), b = make_model(stored, {30, 30}, *backend, 3, false);
  for (Parameter& p : b->parameters().all())
    if (p.name.ends_with("positions")) {
      std::vector<double> rows;
      for (int n = 0; n < 20; ++n)
        for (int c = 0; c < 8; ++c) {
          const double angle = (n + 2) * std::pow(10000.0, -(c % 4) / 3.0);
          rows.push_back(c < 4 ? std::sin(angle) : std::cos(angle));
        }
      p.value.from_doubles(rows);
    } else {
      for (Parameter& q : a->parameters().all())
        if (q.name == p.name) p.value.copy_from(q.value);
    }
  b->parameters().changed();
  const Batch batch = random_batch(3, 30, 9, 12);
  std::vector<float> first, second;
  run(*a, batch, false, &first);
  run(*b, batch, false, &second);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(first[i], second[i], 1e-5);
}

// Where a sentence begins to count changes sinusoids, but no distance.
TEST(Transformer, RelativePositionsKnowDistancesOnly) {
  const auto backend = make_backend("cpu:f32", 1);
  ModelConfig config = related("pre", 4), usual = tiny("pre", "all");
  const auto nll = [&](ModelConfig c, int64_t first) {
    c.first_position = first;
    return run(*make_model(c, {30, 30}, *backend, 3, false), random_batch(3, 30, 9, 12), false).nll;
  };
  EXPECT_EQ(nll(config, 0), nll(config, 7));
  EXPECT_NE(nll(usual, 0), nll(usual, 7));
}

// An encoder that does not read the end of sentence: what stands there changes nothing.
TEST(Transformer, TheSourcesEndCanBeLeftOut) {
  const auto backend = make_backend("cpu:f32", 1);
  const auto model = make_model(placed("pre", 0), {30, 30}, *backend, 3, false),
             usual = make_model(tiny("pre", "none"), {30, 30}, *backend, 3, false);
  const Batch batch = random_batch(3, 30, 9, 12);
  Batch other = batch;
  for (int b = 0; b < 3; ++b) other.source.tokens[other.source.offsets[b + 1] - 1] = 7;
  EXPECT_EQ(run(*model, batch, false).nll, run(*model, other, false).nll);
  EXPECT_NE(run(*usual, batch, false).nll, run(*usual, other, false).nll);
}

TEST(Transformer, AccumulatedMicroBatchesGiveTheGradientOfTheWholeBatch) {
  const auto backend = make_backend("reference");
  const auto model = make_model(tiny("pre", "all"), {13, 13}, *backend, 7, true);
  const Batch whole = random_batch(5, 13, 2);
  run(*model, whole, true);
  const std::vector<double> expected = model->parameters().gradients().to_doubles();

  Arena arena(backend->memory());
  GradientSum sum(model->parameters());
  for (int64_t b = 0; b < 5; ++b) {
    Batch part;
    for (auto [from, to] : {std::pair(&whole.source, &part.source), {&whole.target, &part.target}})
      to->append(from->tokens.data() + from->offsets[b], from->tokens.data() + from->offsets[b + 1]);
    part.sample_ids = {whole.sample_ids[b]};
    Tape tape(model->parameters(), arena, sum, 11, 5);
    model->loss(tape, part, 0.1);
    tape.backward();
  }
  sum.complete();
  const std::vector<double> actual = model->parameters().gradients().to_doubles();
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(expected[i], actual[i], 1e-10);
}

TEST(Transformer, BackendsAgreeOnTenTrainingLosses) {
  std::vector<std::vector<double>> losses;
  for (const char* spec : {"reference", "cpu:f32", "reference", "cpu:f32"}) {
    const auto backend = make_backend(spec, 2);
    const bool other = losses.size() > 1;
    const auto model =
        make_model(other ? foreign("post", Autoregression::ssru, Activation::swish) : tiny("pre", "all"), {40, 40}, *backend, 3, true);
    const Tensor m({model->parameters().values().count()}, backend->parameter(), backend->memory()), v = m.clone();
    losses.emplace_back();
    for (int step = 1; step <= 10; ++step) {
      const LossSums sums = run(*model, random_batch(6, 40, 100 + step), true);
      losses.back().push_back(sums.smoothed / sums.tokens);
      backend->optimizer_step(model->parameters().values(), model->parameters().gradients(), {m, v},
                              AdamStep{1e-3, 0.9, 0.98, 1e-9, 0, false, 1.0 / static_cast<double>(sums.tokens), step});
      model->parameters().changed();
    }
  }
  for (size_t of : {0, 2}) {
    for (int i = 0; i < 10; ++i) EXPECT_NEAR(losses[of][i], losses[of + 1][i], 1e-5 * losses[of][i]) << "step " << i + 1;
  }
  EXPECT_LT(losses[0][9], losses[0][0]);
}

TEST(Transformer, CachedDecodingGivesTheProbabilitiesOfTheForwardPass) {
  for (const ModelConfig& config :
       {tiny("pre", "all"), tiny("post", "all"), foreign("pre", Autoregression::self_attention, Activation::gelu_sigmoid),
        foreign("pre", Autoregression::ssru, Activation::swish), foreign("post", Autoregression::ssru, Activation::relu), placed("pre", 2),
        placed("post", 0), related("pre", 3), related("post", 20)}) {
    const auto backend = make_backend("cpu:f32", 2);
    const auto model = make_model(config, {30, 30}, *backend, 3, false);
    if (config.output_bias) {  // which begins as zeros
      for (Parameter& p : model->parameters().all())
        if (p.name == "decoder.output.bias") {
          std::vector<double> values(30);
          for (size_t i = 0; i < values.size(); ++i) values[i] = 0.1 * static_cast<double>(i % 7);
          p.value.from_doubles(values);
        }
      model->parameters().changed();
    }
    const Batch batch = random_batch(3, 30, 9, 12);
    std::vector<float> nll;
    run(*model, batch, false, &nll);
    // The three references as three hypotheses, fed token by token; a row that has ended repeats its last token.
    const auto state = model->begin_decoding();
    const std::vector<int32_t> sentence = model->encode(*state, batch.source);
    std::vector<int32_t> token(3, model->vocabulary().begin), parent{-1, -1, -1};
    for (int t = 0; t < 13; ++t) {
      const std::vector<double> logits = logits_of(*backend, model->next_output(*state, token, sentence, parent)).to_doubles();
      for (int b = 0; b < 3; ++b) {
        const int32_t at = batch.target.offsets[b] + t;
        if (at >= batch.target.offsets[b + 1]) continue;
        const double* z = logits.data() + b * 30;
        double sum = 0;
        for (int i = 0; i < 30; ++i) sum += std::exp(z[i]);
        EXPECT_NEAR(std::log(sum) - z[batch.target.tokens[at]], nll[at], 1e-4) << "sentence " << b << " position " << t;
        token[b] = batch.target.tokens[at];
      }
      parent = {0, 1, 2};
    }
  }
}

}  // namespace
}  // namespace starling
