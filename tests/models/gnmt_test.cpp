// The whole GNMT: gradients by central differences in double precision, sentences of mixed lengths against the same one by one, the
// backward layer within each sentence, cached decoding against the forward pass, clipped states.
#include "models/gnmt.h"

#include "autograd/ops.h"
#include "backend/meta.h"
#include "tests/models/common.h"

namespace starling {
namespace {

ModelConfig tiny_gnmt(AttentionScore attention = AttentionScore::additive, AttentionQuery query = AttentionQuery::current) {
  ModelConfig c = model_preset("gnmt-small");
  c.encoder_layers = c.decoder_layers = 3, c.width = 6, c.dropout = 0.1, c.init_bound = 0.5;
  c.attention = attention, c.attention_query = query;
  return c;
}

struct GnmtVariant {
  const char* name;
  ModelConfig config;
};

ModelConfig with(ModelConfig c, const char* tied, bool tanh_output, double clip) {
  c.tied_embeddings = from_word<TiedEmbeddings>(tied), c.tanh_output = tanh_output, c.clip = clip;
  return c;
}

ModelConfig with_readout(ModelConfig c) {
  c.readout = Readout::context;
  return c;
}

ModelConfig at_the_top(ModelConfig c) {
  c.attention_place = AttentionPlace::top;
  return with_readout(c);
}

std::vector<GnmtVariant> variants() {
  return {{"additive", tiny_gnmt()},
          {"normalized", with(tiny_gnmt(AttentionScore::normalized), "decoder", true, 0)},
          {"dot", with(tiny_gnmt(AttentionScore::dot), "all", true, 0)},
          {"previous_query", tiny_gnmt(AttentionScore::additive, AttentionQuery::previous)},
          {"clipped", with(tiny_gnmt(), "none", false, 0.3)},
          {"context_readout", with_readout(with(tiny_gnmt(AttentionScore::dot), "decoder", false, 0.5))},
          {"at_the_top", at_the_top(tiny_gnmt(AttentionScore::normalized))},
          {"clipped_at_the_top", at_the_top(with(tiny_gnmt(), "all", false, 0.3))}};
}

class GnmtVariants : public testing::TestWithParam<GnmtVariant> {};
INSTANTIATE_TEST_SUITE_P(Gnmt, GnmtVariants, testing::ValuesIn(variants()), [](const auto& info) { return std::string(info.param.name); });

TEST_P(GnmtVariants, GradientsMatchCentralDifferences) {
  const auto backend = make_backend("reference");
  const auto model = make_model(GetParam().config, {13, 13}, *backend, 7, true);
  Batch batch = random_batch(4, 13, 1);
  batch.weights = {1, 0.25f, -0.5f, 2};
  expect_gradients(*model, batch);
}

TEST_P(GnmtVariants, MixedLengthsEqualTheSentencesOneByOne) {
  for (const char* spec : {"reference", "cpu:f32"}) {
    const auto backend = make_backend(spec, 2);
    const auto model = make_model(GetParam().config, {13, 13}, *backend, 7, true);
    const Batch whole = random_batch(7, 13, 2, 12);
    std::vector<float> together, alone;
    run(*model, whole, true, &together);
    const std::vector<double> expected = model->parameters().gradients().to_doubles();
    Arena arena(backend->memory());
    GradientSum sum(model->parameters());
    for (int64_t b = 0; b < whole.source.sentences(); ++b) {
      Batch part;
      for (auto [from, to] : {std::pair(&whole.source, &part.source), {&whole.target, &part.target}})
        to->append(from->tokens.data() + from->offsets[b], from->tokens.data() + from->offsets[b + 1]);
      part.sample_ids = {whole.sample_ids[b]};
      Tape tape(model->parameters(), arena, sum, 11, 5);
      const std::vector<float> nll = model->loss(tape, part, 0.1).read_nll();
      alone.insert(alone.end(), nll.begin(), nll.end());
      tape.backward();
    }
    sum.complete();
    ASSERT_EQ(together.size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(together[i], alone[i], 1e-5) << spec << " token " << i;
    const std::vector<double> actual = model->parameters().gradients().to_doubles();
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(expected[i], actual[i], 1e-5 * (1 + std::abs(expected[i]))) << spec;
  }
}

TEST_P(GnmtVariants, BackendsAgreeOnGradients) {
  ModelConfig config = GetParam().config;
  config.width = 40;  // more than one vector, and a tail
  const Batch batch = random_batch(20, 50, 3, 25);
  std::vector<std::vector<double>> gradients;
  for (const char* spec : {"reference", "cpu:f32"}) {
    const auto backend = make_backend(spec, 2);
    const auto model = make_model(config, {50, 50}, *backend, 3, true);
    run(*model, batch, true);
    gradients.push_back(model->parameters().gradients().to_doubles());
  }
  double squares = 0, errors = 0;
  for (size_t i = 0; i < gradients[0].size(); ++i)
    squares += gradients[0][i] * gradients[0][i], errors += std::pow(gradients[0][i] - gradients[1][i], 2);
  EXPECT_LT(std::sqrt(errors / squares), 1e-5);
}

// Fed with the references step by step, the model must give the forward pass's probabilities.
void expect_equal_decoding(Model& model_reference, double tolerance) {
  Model* model = &model_reference;
  const Batch batch = random_batch(3, 30, 9, 12);
  std::vector<float> nll;
  run(*model, batch, false, &nll);
  const auto state = model->begin_decoding();
  const std::vector<int32_t> numbers = model->encode(*state, batch.source);
  // Two rows a sentence that change places at every step. One of them reads the reference, the other strays; the reference's states must
  // follow it.
  std::vector<int32_t> token(6, 1), sentence, parent(6, -1);
  for (const int32_t number : numbers) sentence.insert(sentence.end(), 2, number);
  Tensor weights;
  for (int t = 0; t < 13; ++t) {
    const std::vector<double> logits =
        logits_of(model->parameters().backend(), model->next_output(*state, token, sentence, parent, &weights)).to_doubles();
    const std::vector<double> attention = weights.to_doubles();
    size_t at_weight = 0;
    for (int r = 0; r < 6; ++r) {
      const int b = r / 2, keys = batch.source.offsets[b + 1] - batch.source.offsets[b];
      double mass = 0;
      for (int j = 0; j < keys; ++j) mass += attention[at_weight++];
      EXPECT_NEAR(mass, 1, 1e-5);
      const int32_t at = batch.target.offsets[b] + t;
      const bool faithful = r % 2 == t % 2;  // in this step; it comes next at the other place
      if (at >= batch.target.offsets[b + 1]) continue;
      const double* z = logits.data() + r * 30;
      double sum = 0;
      for (int i = 0; i < 30; ++i) sum += std::exp(z[i]);
      if (faithful) {
        EXPECT_NEAR(std::log(sum) - z[batch.target.tokens[at]], nll[at], tolerance) << "sentence " << b << " position " << t;
      }
      token[2 * b + (r + 1) % 2] = faithful ? batch.target.tokens[at] : 3 + (5 * t + b) % 27;
    }
    EXPECT_EQ(at_weight, attention.size());
    parent = {1, 0, 3, 2, 5, 4};
  }
}

TEST_P(GnmtVariants, DecodingStepByStepGivesTheProbabilitiesOfTheForwardPass) {
  const auto backend = make_backend("cpu:f32", 2);
  const auto model = make_model(GetParam().config, {30, 30}, *backend, 3, false);
  expect_equal_decoding(*model, 1e-4);
}

TEST(Gnmt, EightBitDecodingGivesTheProbabilitiesOfItsOwnForwardPass) {
  const auto backend = make_backend("cpu:f32", 2);
  const auto model = make_model(with_readout(with(tiny_gnmt(), "none", false, 1.0)), {30, 30}, *backend, 3, false);
  const Batch batch = random_batch(3, 30, 9, 12);
  const double exact = run(*model, batch, false).nll;
  for (Parameter& p : model->parameters().all())
    if (p.shape.rank() == 2 && !p.name.ends_with("embedding")) p.quantized = true;
  model->parameters().changed();
  const double rounded = run(*model, batch, false).nll;
  EXPECT_NE(exact, rounded);
  EXPECT_NEAR(exact, rounded, 0.02 * exact);
  // Cells are 16-bit integers in both; a rounding that falls the other way is all that may differ.
  expect_equal_decoding(*model, 2e-3);
  // A recurrent weight that stays float has float cells beside the others' integers.
  model->parameters().find("decoder.1.recurrent.weight")->quantized = false;
  model->parameters().find("encoder.0.backward.recurrent.weight")->quantized = false;
  model->parameters().changed();
  for (Parameter& p : model->parameters().all()) p.packed = std::make_shared<PackedForms>();
  expect_equal_decoding(*model, 2e-3);
}

TEST(Gnmt, TheBackwardLayerReadsEachSentenceFromItsOwnEnd) {
  const auto backend = make_backend("reference");
  const auto model = make_model(tiny_gnmt(), {13, 13}, *backend, 7, false);
  // The first source word must matter to a longer neighbour not at all.
  Batch batch = random_batch(2, 13, 4, 3), changed;
  std::vector<float> before, after;
  run(*model, batch, false, &before);
  changed = batch;
  changed.source.tokens[0] = changed.source.tokens[0] == 5 ? 6 : 5;
  run(*model, changed, false, &after);
  for (int32_t i = 0; i < batch.target.count(); ++i) {
    if (i >= batch.target.offsets[1])
      EXPECT_EQ(before[i], after[i]) << "token " << i << " of the other sentence";
    else
      EXPECT_NE(before[i], after[i]) << "token " << i;
  }
}

TEST(Gnmt, AReversedLstmIsTheLstmOfReversedSentences) {
  const auto backend = make_backend("reference");
  ParameterStore store(*backend);
  Parameter& input = store.add("input", {13, 12}, {Initializer::uniform, 1.0});
  Parameter& recurrent = store.add("recurrent", {3, 12}, {Initializer::uniform, 1.0});
  store.allocate(5, false);
  const std::vector<double> inputs = input.value.to_doubles();
  const PackedTokens sentences = random_batch(6, 13, 8, 9).source;
  PackedTokens mirrored;
  for (int64_t b = 0; b < sentences.sentences(); ++b) {
    std::vector<int32_t> tokens(sentences.tokens.begin() + sentences.offsets[b], sentences.tokens.begin() + sentences.offsets[b + 1]);
    std::reverse(tokens.begin(), tokens.end());
    mirrored.append(tokens.data(), tokens.data() + tokens.size());
  }
  const auto hidden = [&](const PackedTokens& packed, bool reverse) {
    Arena arena(backend->memory());
    Tape tape(store, arena);
    const TimeOrder order = time_order(tape, packed, 64);
    const Tensor gates({static_cast<int64_t>(order.packed.size()), 12}, DType::f64, backend->memory());
    std::vector<double> values(static_cast<size_t>(gates.count()));
    for (size_t n = 0; n < order.packed.size(); ++n)
      for (int c = 0; c < 12 && order.packed[n] >= 0; ++c) values[n * 12 + c] = inputs[packed.tokens[order.packed[n]] * 12 + c];
    gates.from_doubles(values);
    LstmOptions options;
    options.reverse = reverse;
    const std::vector<double> rows = lstm({&tape, -1, gates}, recurrent, order, options).value.to_doubles();
    std::vector<double> result;
    for (int32_t row : order.row_of.part(0, packed.count()))
      result.insert(result.end(), rows.begin() + 3 * row, rows.begin() + 3 * row + 3);
    return result;
  };
  const std::vector<double> backward = hidden(sentences, true), forward = hidden(mirrored, false);
  for (int64_t b = 0; b < sentences.sentences(); ++b)
    for (int32_t i = sentences.offsets[b], j = sentences.offsets[b + 1] - 1; j >= sentences.offsets[b]; ++i, --j)
      for (int c = 0; c < 3; ++c) EXPECT_EQ(backward[3 * i + c], forward[3 * j + c]) << "sentence " << b;
  // The first state of a forward pass is that of the first token alone.
  const int32_t first = sentences.tokens[0];
  const double* x = inputs.data() + 12 * first;
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  EXPECT_NEAR(hidden(sentences, false)[0], sigmoid(x[9]) * std::tanh(sigmoid(x[0]) * std::tanh(x[6])), 1e-12);
}

TEST(Gnmt, TimeOrderIsAPermutationWithFallingRows) {
  const Batch batch = random_batch(20, 13, 8, 30);
  const auto backend = make_backend("reference");
  ParameterStore store(*backend);
  Arena arena(backend->memory());
  GradientSum sum(store);
  Tape tape(store, arena, sum, 1, 1);
  const TimeOrder order = time_order(tape, batch.source, 64);
  EXPECT_EQ(order.packed.size() % 64, 0u);
  EXPECT_EQ(order.step.back(), batch.source.count());
  for (int64_t t = 1; t < order.steps(); ++t) EXPECT_LE(order.count(t), order.count(t - 1));
  EXPECT_EQ(order.count(0), 20);
  for (int64_t i = 0; i < batch.source.count(); ++i) EXPECT_EQ(order.packed[order.row_of[i]], i);
  for (int64_t b = 0; b < batch.source.sentences(); ++b)
    for (int32_t i = batch.source.offsets[b]; i < batch.source.offsets[b + 1]; ++i) {
      EXPECT_EQ(order.earlier[order.row_of[i]], i == batch.source.offsets[b] ? -1 : order.row_of[i - 1]) << i;
      EXPECT_EQ(order.later[order.row_of[i]], i + 1 == batch.source.offsets[b + 1] ? -1 : order.row_of[i + 1]) << i;
    }
}

TEST(Gnmt, ClippedStatesAreCountedAndBounded) {
  const auto backend = make_backend("reference");
  const auto model = make_model(with(tiny_gnmt(), "none", false, 0), {13, 13}, *backend, 7, false);
  const Batch batch = random_batch(5, 13, 6);
  EXPECT_EQ(run(*model, batch, false).clippable, 0);
  model->set_clip(1e6);
  const LossSums wide = run(*model, batch, false);
  // Cells of four encoder and three decoder stacks, residual sums of one layer on each side.
  EXPECT_EQ(wide.clippable, 6 * (5 * batch.source.count() + 4 * batch.target.count()));
  EXPECT_EQ(wide.clipped, 0);
  model->set_clip(0.05);
  const LossSums narrow = run(*model, batch, false);
  EXPECT_GT(narrow.clipped, narrow.clippable / 20);
  EXPECT_NE(narrow.nll, wide.nll);
}

// Above the bottom decoder layer nothing but the readout sees the source: layers that read contexts would have D + M columns.
TEST(Gnmt, WithAttentionAtTheTopTheDecoderIsAPlainStack) {
  const auto backend = make_backend("reference");
  ModelConfig config = at_the_top(tiny_gnmt());
  const auto top = make_model(config, {13, 13}, *backend, 7, false);
  EXPECT_EQ(top->parameters().find("decoder.1.input.weight")->shape, (Shape{6, 24}));
  EXPECT_EQ(top->parameters().find("attention.query.weight")->units, std::vector<size_t>{6});  // the output's
  config.decoder_layers = 1;
  const auto one = make_model(config, {13, 13}, *backend, 7, false);
  EXPECT_EQ(one->units(), 5u);
  EXPECT_GT(run(*one, random_batch(3, 13, 2), false).nll, 0);
}

TEST(Gnmt, SettingsThatDoNotFitAttentionAtTheTopAreRefused) {
  const auto backend = make_backend("reference");
  const auto refusal = [&](const ModelConfig& config) -> std::string {
    try {
      declare_model(config, {13, 13}, *backend);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  ModelConfig config = at_the_top(tiny_gnmt());
  EXPECT_EQ(refusal(config), "");
  config.attention_query = AttentionQuery::previous;
  EXPECT_EQ(
      refusal(config),
      "model.attention-query previous has no use with model.attention-place top, where no layer waits for the query; set it to current, or "
      "model.attention-place to bottom");
  config = at_the_top(tiny_gnmt()), config.readout = Readout::state;
  EXPECT_EQ(refusal(config),
            "model.attention-place top gives the attention's context to the readout alone; set model.readout to context, or "
            "model.attention-place to bottom");
  config = tiny_gnmt(), config.decoder_layers = 1;
  EXPECT_EQ(refusal(config),
            "model.decoder-layers: attention feeds the layers above the bottom one, so gnmt needs at least 2; raise it, or set "
            "model.attention-place to top and model.readout to context");
}

TEST(Gnmt, PublishedSize) {
  // 278.7 M parameters are what the paper's system adds up to with a vocabulary of 32k pieces: three tables, 79.7 M in the encoder, and a
  // decoder whose layers all but the bottom one read the context (4.2 M less than with it), besides the attention's 2.1 M.
  MetaBackend backend(DType::f32, DType::f32);
  const auto model = make_model(model_preset("gnmt"), {32000, 32000}, backend, std::nullopt, true);
  EXPECT_NEAR(static_cast<double>(model->parameters().count()) / 1e6, 278.7 - 4.2 + 2.1, 0.5);
}

}  // namespace
}  // namespace starling
