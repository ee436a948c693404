// Beam search in f32 on an emulated card beside the processor: the same translations, with scores that differ by rounding alone (on a real
// card, where hypotheses may be equal but for rounding: same_lists.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "decode/beam_search.h"
#include "tests/card/real_card.h"
#include "tests/decode/same_lists.h"
#include "tests/emulated/emulator.h"

namespace starling {
namespace {

constexpr int64_t kEmulatedVocabulary = 50;

struct Kind {
  const char* name;
  ModelConfig config;
};

std::vector<Kind> kinds() {
  std::vector<Kind> all{{"PreNorm", model_preset("transformer-tiny")},
                        {"PostNorm", model_preset("transformer-tiny")},
                        {"GnmtBottom", model_preset("gnmt-small")},
                        {"GnmtTop", model_preset("gnmt-small")},
                        {"GnmtClipped", model_preset("gnmt-small")}};
  for (Kind& k : all) {
    k.config.encoder_layers = k.config.decoder_layers = 2, k.config.width = 48;
    if (k.config.heads > 1) k.config.heads = 4, k.config.feed_forward = 96;
  }
  all[1].config.norm = NormPlace::post;
  all[3].config.attention_place = AttentionPlace::top, all[3].config.readout = Readout::context;
  all[4].config.clip = 0.3, all[4].config.tanh_output = false;
  return all;
}

class EmulatedSearch : public testing::TestWithParam<Kind> {
 protected:
  // With larger weights than a new model's, so that predictions are uneven and no two hypotheses are equal but for rounding.
  std::vector<std::vector<Hypothesis>> found(const char* spec, const SearchOptions& options) const {
    const auto backend = make_backend(spec, 1);
    const auto model = make_model(GetParam().config, {kEmulatedVocabulary, kEmulatedVocabulary}, *backend, 7, false);
    std::vector<double> values = model->parameters().values().to_doubles();
    Random random(8, 8);
    for (double& v : values) v = 1.5 * v + 0.1 * random.normal();
    model->parameters().values().from_doubles(values), model->parameters().changed();
    std::vector<std::vector<int32_t>> sources(6);
    for (auto& s : sources) {
      s.resize(2 + random.below(8));
      for (int32_t& t : s) t = static_cast<int32_t>(3 + random.below(kEmulatedVocabulary - 3));
      s.back() = 2;
    }
    return beam_search(*model, sources, options);
  }
};

TEST_P(EmulatedSearch, FindsWhatTheProcessorFinds) {
  SearchOptions beam{.beam = 4}, greedy{.beam = 1};
  beam.n_best = 4, beam.length_penalty = 0.6, beam.coverage_penalty = 0.2, beam.alignment = true;
  beam.max_length_factor = greedy.max_length_factor = 1, beam.max_length_offset = greedy.max_length_offset = 3;
  for (const SearchOptions& options : {beam, greedy}) {
    const auto card = found("cuda-emulated:f32", options), processor = found("cpu:f32", options);
    EXPECT_THAT(differences(card, processor, on_real_card()), testing::IsEmpty());
  }
}

// Two hypotheses that change places are a near tie only if their scores say so.
TEST(SameLists, NearTiesMayTurn) {
  const auto hypothesis = [](int32_t first, int32_t last, double score) {
    Hypothesis h;
    h.tokens = {first, last}, h.score = score;
    return h;
  };
  NBestLists processor;
  for (int32_t i = 0; i < 4; ++i) processor.push_back({hypothesis(i, 3, -10), hypothesis(i, 4, -10.0001), hypothesis(i, 5, -11)});
  NBestLists card = processor;
  EXPECT_THAT(differences(card, processor, false), testing::IsEmpty());
  card[1][0].tokens = {1, 6};
  EXPECT_THAT(differences(card, processor, true), testing::IsEmpty());
  EXPECT_THAT(differences(card, processor, false), testing::ElementsAre("sentence 1 hypothesis 0: tokens 1 6, not 1 3"));
  card[1][1].tokens = {1, 3};
  EXPECT_THAT(differences(card, processor, true), testing::SizeIs(2)) << "of twelve places one may";
  card[1] = processor[1];
  std::swap(card[2][1], card[2][2]);
  EXPECT_THAT(differences(card, processor, true), testing::Contains("sentence 2 hypothesis 1: score -11, not -10.0001"));
  card = processor, card[3][1].alignment = {1};
  EXPECT_THAT(differences(card, processor, true), testing::ElementsAre("sentence 3 hypothesis 1: another alignment"));
  card = processor, card[0][2].score = std::nan("");
  EXPECT_THAT(differences(card, processor, true), testing::SizeIs(1));
}

// A step of decoding sends one list to the card and brings one block back; the biases of constant weights are converted once, and rows
// are padded to few different numbers.
TEST_P(EmulatedSearch, AStepAsksLittleOfTheCard) {
  if (on_real_card()) GTEST_SKIP() << "a real card does not count its calls";
  const auto backend = make_backend("cuda-emulated:bf16", 1);
  const ModelConfig& config = GetParam().config;
  const auto model = make_model(config, {kEmulatedVocabulary, kEmulatedVocabulary}, *backend, 7, false);
  const auto state = model->begin_decoding();
  PackedTokens source;
  const std::vector<int32_t> first{5, 9, 3, 2}, second{4, 2};
  source.append(first.data(), first.data() + first.size());
  source.append(second.data(), second.data() + second.size());
  const std::vector<int32_t> numbers = model->encode(*state, source);
  const std::vector<int32_t> sentence{numbers[0], numbers[0], numbers[1]};
  std::vector<int32_t> token{1, 1, 1}, parent{-1, -1, -1};
  emulated_cuda::Calls before, after;
  for (int step = 0; step < 3; ++step) {
    before = emulated_cuda::calls();
    const OutputProduct output = model->next_output(*state, token, sentence, parent, nullptr);
    EXPECT_EQ(output.x.rows(), 16);
    std::vector<float> values;
    log_softmax_top_k(*backend, output, {}, 1, values, token);
    after = emulated_cuda::calls();
    parent = {0, 1, 2};
  }
  EXPECT_EQ(after.uneven_products, before.uneven_products);
  EXPECT_EQ(after.uploads - before.uploads, 1);
  EXPECT_EQ(after.downloads - before.downloads, 1);
  const bool recurrent = config.heads <= 1;  // its states are tensors of their own, and there is one attention
  EXPECT_EQ(after.allocations - before.allocations, recurrent ? 5 : 1);
  if (recurrent) return;
  // A layer: q, k and v of prefix and source, two outputs, and the feed-forward layer's two. Three norms, the cache's new row, two
  // attentions. Beside these the output, the embedding, the best tokens and the last norm.
  const auto layers = static_cast<int64_t>(config.decoder_layers);
  EXPECT_EQ(after.products - before.products, 6 * layers + 1);
  EXPECT_EQ(after.kernels - before.kernels, 6 * layers + 2 + (config.norm == NormPlace::pre ? 1 : 0));
}

INSTANTIATE_TEST_SUITE_P(All, EmulatedSearch, testing::ValuesIn(kinds()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace starling
