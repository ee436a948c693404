// Samples against the probabilities they should have, and what they may depend on.
#include "decode/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "base/random.h"
#include "tests/emulated/slow.h"

namespace starling {
namespace {

// A model whose next token depends on the last one alone, by a table of logits.
class Markov : public Model {
 public:
  Markov(Backend& backend, std::vector<std::vector<double>> table, int32_t unknown = -1, int32_t padding = -1)
      : store_(backend), table_(std::move(table)) {
    vocabulary_.unknown = unknown, vocabulary_.padding = padding;
    vocabulary_.source_size = vocabulary_.target_size = static_cast<int64_t>(table_.size());
  }
  ParameterStore& parameters() override { return store_; }
  const ModelConfig& config() const override { return config_; }
  const ModelVocabulary& vocabulary() const override { return vocabulary_; }
  std::vector<EmbeddingTable> embedding_tables() override { return {}; }
  size_t units() const override { return 1; }
  std::vector<Shape> boundary(size_t, const Batch&) const override { return {}; }
  std::vector<Var> forward(Tape&, const Batch&, double, std::vector<Var>, Loss&) override { throw Error("not a model to train"); }
  std::unique_ptr<DecodeState> begin_decoding() override { return std::make_unique<State>(); }
  std::vector<int32_t> encode(DecodeState&, const PackedTokens& source) override {
    std::vector<int32_t> numbers(static_cast<size_t>(source.sentences()));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }
  OutputProduct next_output(DecodeState&, std::span<const int32_t> token, std::span<const int32_t> sentence, std::span<const int32_t>,
                            Tensor*) override {
    EXPECT_TRUE(std::is_sorted(sentence.begin(), sentence.end()));
    rows += static_cast<int64_t>(token.size());
    const auto R = static_cast<int64_t>(token.size()), V = vocabulary_.target_size;
    Backend& backend = store_.backend();
    const Tensor last({R, V}, backend.activation(), backend.memory()), table({V, V}, backend.parameter(), backend.memory());
    std::vector<double> ones(static_cast<size_t>(R * V)), values;
    for (int64_t r = 0; r < R; ++r) ones[static_cast<size_t>(r * V + token[static_cast<size_t>(r)])] = 1;
    for (const auto& row : table_) values.insert(values.end(), row.begin(), row.end());
    last.from_doubles(ones), table.from_doubles(values);
    packed_ = backend.pack(table, false, nullptr);
    return {last, R, packed_.get()};
  }
  // Among the tokens but `never`.
  double probability(int32_t from, int32_t to, int32_t never = -1) const {
    double sum = 0;
    for (int32_t t = 0; const double z : table_[static_cast<size_t>(from)])
      if (t++ != never) sum += std::exp(z);
    return to == never ? 0 : std::exp(table_[static_cast<size_t>(from)][static_cast<size_t>(to)]) / sum;
  }
  int64_t rows = 0;  // computed so far

 private:
  struct State : DecodeState {
    void drop(int32_t) override {}
    int64_t bytes() const override { return 0; }
  };
  ModelConfig config_;
  ModelVocabulary vocabulary_;
  std::shared_ptr<Packed> packed_;
  ParameterStore store_;
  std::vector<std::vector<double>> table_;
};

std::vector<std::vector<double>> random_table(int64_t size, uint64_t seed) {
  Random random(seed, 1);
  std::vector<std::vector<double>> table(static_cast<size_t>(size), std::vector<double>(static_cast<size_t>(size)));
  for (auto& row : table)
    for (double& z : row) z = random.normal();
  return table;
}

PackedTokens packed(const std::vector<std::vector<int32_t>>& sentences) {
  PackedTokens all;
  for (const auto& s : sentences) all.append(s.data(), s.data() + s.size());
  return all;
}

TEST(Sampling, FrequenciesOfWholeTranslationsAreTheirProbabilities) {
  for (const char* spec : {"reference", "cpu:f32"}) {
    const auto backend = make_backend(spec, 2);
    Markov model(*backend, random_table(4, 5));
    SamplingOptions o;
    o.samples = unless_emulated(40000, 8000), o.max_length_factor = 0, o.max_length_offset = 3, o.key = 77;
    const std::vector<int64_t> ids{123456789012};
    const auto drawn = sample_translations(model, model.vocabulary(), packed({{3, 2}}), ids, o)[0];
    std::map<std::vector<int32_t>, double> expected, counts;
    std::function<void(std::vector<int32_t>, double)> visit = [&](const std::vector<int32_t>& prefix, double p) {
      if (prefix.size() == 3 || (!prefix.empty() && prefix.back() == 2)) {
        expected[prefix] = p * static_cast<double>(o.samples);
        return;
      }
      for (int32_t t = 0; t < 4; ++t) {
        std::vector<int32_t> longer = prefix;
        longer.push_back(t);
        visit(longer, p * model.probability(prefix.empty() ? 1 : prefix.back(), t));
      }
    };
    visit({}, 1);
    for (const auto& tokens : drawn) ++counts[tokens];
    double chi_square = 0;
    for (const auto& [tokens, n] : counts) ASSERT_TRUE(expected.contains(tokens));
    for (const auto& [tokens, n] : expected) chi_square += (counts[tokens] - n) * (counts[tokens] - n) / n;
    const auto freedom = static_cast<double>(expected.size()) - 1;
    EXPECT_EQ(expected.size(), 1u + 3 + 9 * 4);
    EXPECT_LT(chi_square, freedom + 4 * std::sqrt(2 * freedom)) << spec;
    EXPECT_GT(chi_square, freedom - 4 * std::sqrt(2 * freedom)) << spec;  // too even would not be random
  }
}

TEST(Sampling, TheUnknownSymbolIsNotDrawnAndTheOthersShareItsProbability) {
  for (const char* spec : {"reference", "cpu:f32"}) {
    const auto backend = make_backend(spec, 2);
    for (const int32_t unknown : {0, 3, 4}) {
      Markov model(*backend, random_table(5, 5), unknown);
      SamplingOptions o;
      o.samples = unless_emulated(20000, 4000), o.max_length_factor = 0, o.max_length_offset = 1, o.key = 78;
      const std::vector<int64_t> ids{7};
      std::vector<double> counts(5);
      const auto draw = [&] { return sample_translations(model, model.vocabulary(), packed({{3, 2}}), ids, o).at(0); };
      for (const auto& tokens : draw()) ++counts[static_cast<size_t>(tokens.at(0))];
      const auto n = static_cast<double>(o.samples);
      for (int32_t t = 0; t < 5; ++t) {
        const double p = model.probability(1, t, unknown);
        EXPECT_NEAR(counts[static_cast<size_t>(t)], n * p, 4 * std::sqrt(n * p * (1 - p))) << spec << ", " << t << " without " << unknown;
      }
      o.allow_unknown = true;
      int64_t drawn = 0;
      for (const auto& tokens : draw()) drawn += tokens[0] == unknown;
      EXPECT_GT(drawn, 0) << spec;
    }
  }
}

TEST(Sampling, PaddingIsNeverDrawn) {
  const auto backend = make_backend("reference", 1);
  std::vector<std::vector<double>> table = random_table(5, 6);
  for (auto& row : table) row[4] = 6;
  Markov model(*backend, table, 0, 4);
  SamplingOptions o;
  o.samples = 200, o.allow_unknown = true;
  const std::vector<int64_t> ids{7};
  const Samples drawn = sample_translations(model, model.vocabulary(), packed({{3, 2}}), ids, o).at(0);
  EXPECT_EQ(drawn.size(), 200u);
  for (const auto& tokens : drawn) EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 4), 0);
}

TEST(Sampling, RowsThatEndedAreNotComputedAndLimitsHold) {
  const auto backend = make_backend("reference", 1);
  Markov model(*backend, random_table(5, 9));
  SamplingOptions o;
  o.samples = 50, o.max_length_factor = 1, o.max_length_offset = 1;
  const std::vector<int64_t> ids{4, 7};
  const auto drawn = sample_translations(model, model.vocabulary(), packed({{3, 2}, {3, 3, 4, 3, 2}}), ids, o);
  int64_t tokens = 0, cut = 0;
  for (size_t b = 0; b < 2; ++b) {
    ASSERT_EQ(drawn[b].size(), 50u);
    for (const auto& sample : drawn[b]) {
      const size_t limit = b == 0 ? 3 : 6;
      tokens += static_cast<int64_t>(sample.size());
      EXPECT_LE(sample.size(), limit);
      for (size_t i = 0; i + 1 < sample.size(); ++i) EXPECT_NE(sample[i], 2);
      if (sample.back() == 2) continue;
      ++cut;
      EXPECT_EQ(sample.size(), limit);
    }
  }
  EXPECT_EQ(model.rows, tokens);
  EXPECT_GT(cut, 0);
}

TEST(Sampling, DependsOnKeyIdAndNumberNotOnTheBatch) {
  const auto backend = make_backend("reference", 1);
  ModelConfig config = model_preset("transformer-tiny");
  config.encoder_layers = config.decoder_layers = 1, config.width = 16, config.feed_forward = 32, config.heads = 2;
  const auto model = make_model(config, {9, 9}, *backend, 3, false);
  const std::vector<std::vector<int32_t>> sources{{3, 4, 2}, {5, 6, 7, 8, 2}, {3, 2}, {3, 4, 2}};
  const std::vector<int64_t> ids{10, 11, 12, 13};
  SamplingOptions o;
  o.samples = 7, o.key = 5;
  const auto together = sample_translations(*model, model->vocabulary(), packed(sources), ids, o);
  EXPECT_EQ(sample_translations(*model, model->vocabulary(), packed(sources), ids, o), together);
  for (size_t b = 0; b < sources.size(); ++b) {
    const auto alone = sample_translations(*model, model->vocabulary(), packed({sources[b]}), std::span(ids).subspan(b, 1), o);
    EXPECT_EQ(alone[0], together[b]);
  }
  EXPECT_NE(together[0], together[3]);  // equal sources, other ids
  o.samples = 3;
  const auto fewer = sample_translations(*model, model->vocabulary(), packed(sources), ids, o);
  for (size_t b = 0; b < sources.size(); ++b) EXPECT_EQ(fewer[b], Samples(together[b].begin(), together[b].begin() + 3));
  o.key = 6;
  EXPECT_NE(sample_translations(*model, model->vocabulary(), packed(sources), ids, o), fewer);
}

// The cumulative probabilities in double precision bracket the uniform number, for every instruction set.
TEST(Sampling, TheOpInvertsTheCumulativeDistribution) {
  for (const char* isa : {"v2", "v3", ""}) {  // "": this machine's
    if (*isa)
      setenv("STARLING_ISA", isa, 1);
    else
      unsetenv("STARLING_ISA");
    const auto backend = make_backend("cpu:f32", 2);
    Random random(3, 3);
    for (const int64_t V : {1, 3, 17, 255, 256, 1000, 32003, 100001}) {
      const Tensor logits({8, V}, DType::f32, backend->memory());
      std::vector<double> values(static_cast<size_t>(8 * V)), uniforms{0, 1 - 0x1.0p-53};
      for (double& z : values) z = static_cast<float>(4 * random.normal());
      for (int64_t v = 0; v < V - 1; ++v) values[static_cast<size_t>(2 * V + v)] = -200;  // impossible in f32, all but the last token
      while (uniforms.size() < 8) uniforms.push_back(random.uniform());
      logits.from_doubles(values);
      const Tensor drawn({8}, DType::i32, backend->memory());
      backend->sample(logits, {uniforms, backend->memory()}, drawn);
      std::vector<int32_t> tokens(8);
      drawn.read<int32_t>(tokens);
      EXPECT_EQ(tokens[2], V - 1);
      for (size_t r = 0; r < 8; ++r) {
        const double* z = values.data() + static_cast<int64_t>(r) * V;
        double total = 0, before = 0;
        for (int64_t v = 0; v < V; ++v) total += std::exp(z[v]);
        ASSERT_GE(tokens[r], 0);
        ASSERT_LT(tokens[r], V);
        for (int64_t v = 0; v < tokens[r]; ++v) before += std::exp(z[v]) / total;
        EXPECT_LE(before, uniforms[r] + 1e-5) << V << " row " << r;
        EXPECT_GT(before + std::exp(z[tokens[r]]) / total, uniforms[r] - 1e-5) << V << " row " << r;
      }
    }
  }
}

}  // namespace
}  // namespace starling
