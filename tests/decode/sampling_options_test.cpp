// Samples from sharpened and cut distributions against the probabilities that the model's functions give, and translators that draw them.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "decode/translator.h"
#include "tests/decode/plain_search.h"
#include "tests/decode/small_vocabulary.h"
#include "tests/emulated/slow.h"

namespace starling {
namespace {

const Sources kOneSource{{3, 4, kEnd}};

PackedTokens one_source() {
  PackedTokens all;
  all.append(kOneSource[0].data(), kOneSource[0].data() + kOneSource[0].size());
  return all;
}

// What a step should draw from: the k most probable of the allowed tokens, raised to the power 1 / temperature, and of these the first ones
// that have together at least top_p.
std::vector<double> cut_distribution(const std::vector<double>& logits, const SamplingOptions& o, const std::set<int32_t>& forbidden) {
  std::vector<int32_t> order;
  for (int32_t t = 0; t < static_cast<int32_t>(logits.size()); ++t)
    if (!forbidden.contains(t)) order.push_back(t);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  if (o.top_k > 0 && static_cast<int64_t>(order.size()) > o.top_k) order.resize(o.top_k);
  std::vector<double> p(logits.size());
  double sum = 0;
  for (const int32_t t : order) sum += p[t] = std::exp(logits[t] / o.temperature);
  double before = 0, kept = 0;
  for (const int32_t t : order) {
    if (before >= o.top_p * sum && kept > 0) {
      before += p[t], p[t] = 0;
    } else {
      before += p[t], kept += p[t];
    }
  }
  for (double& v : p) v /= kept;
  return p;
}

TEST(SamplingOptions, FrequenciesAreThoseOfTheSharpenedAndCutDistribution) {
  constexpr int32_t V = 8, unknown = 0;
  FakeModel m = random_model(12, V, kOneSource, 1.3, false, unknown);
  const std::vector<int64_t> ids{5};
  for (const int64_t top_k : {0, 1, 3, 7, 20})
    for (const auto& [temperature, top_p] : {std::pair(0.5, 1.0), {1.0, 1.0}, {2.0, 1.0}, {2.0, 0.6}}) {
      SamplingOptions o{.samples = unless_emulated(4000, 1000), .max_length_factor = 0, .max_length_offset = 2, .key = 31};
      o.top_k = top_k, o.temperature = temperature, o.top_p = top_p, o.prefix = {4};
      const Sequences rules{{6}, {4, 5}, {5, 3}};
      o.forbidden = ForbiddenTokens(rules, 0);
      std::map<Prefix, double> expected, counts;
      const std::vector<double> first = cut_distribution(m.logits(0, {4}), o, {unknown, 5, 6});
      for (int32_t a = 0; a < V; ++a) {
        if (a == kEnd && first[a] > 0) expected[{a}] = first[a];
        if (a == kEnd || first[a] == 0) continue;
        std::set<int32_t> forbidden{unknown, 6};
        if (a == 4) forbidden.insert(5);
        if (a == 5) forbidden.insert(3);
        const std::vector<double> second = cut_distribution(m.logits(0, {4, a}), o, forbidden);
        for (int32_t b = 0; b < V; ++b)
          if (second[b] > 0) expected[{a, b}] = first[a] * second[b];
      }
      const Samples drawn = sample_translations(m, m.vocabulary(), one_source(), ids, o)[0];
      for (const Prefix& tokens : drawn) ++counts[tokens];
      for (const auto& [tokens, n] : counts) ASSERT_TRUE(expected.contains(tokens)) << top_k << " " << ::testing::PrintToString(tokens);
      // Rare outcomes together, since the statistic is normal only for frequent ones.
      double chi_square = 0, rare = 0, rare_drawn = 0;
      int64_t classes = 0;
      const auto add = [&](double n, double drawn) {
        if (n > 0) chi_square += (drawn - n) * (drawn - n) / n, ++classes;
      };
      for (const auto& [tokens, p] : expected) {
        const double n = p * static_cast<double>(o.samples);
        if (n < 10)
          rare += n, rare_drawn += counts[tokens];
        else
          add(n, counts[tokens]);
      }
      add(rare, rare_drawn);
      const double freedom = static_cast<double>(classes - 1);
      EXPECT_LE(chi_square, freedom + 4.5 * std::sqrt(2 * freedom)) << "top " << top_k << ", " << top_p << " at " << temperature;
      EXPECT_TRUE(top_k != 1 || counts.size() == 1);
    }
}

TEST(SamplingOptions, LogProbabilitiesAreTheModelsOwn) {
  FakeModel m = random_model(4, 9, kOneSource, 1.0, false, 0);
  const std::vector<int64_t> ids{5};
  for (const int64_t top_k : {0, 4}) {
    SamplingOptions o{.samples = 30, .max_length_factor = 0, .max_length_offset = 6, .key = 3};
    o.top_k = top_k, o.temperature = 1.7, o.prefix = {7, 8};
    const Sequences rules{{6}, {5, 5}};
    o.forbidden = ForbiddenTokens(rules, 2);
    std::vector<SampleScores> log_probabilities;
    const Samples drawn = sample_translations(m, m.vocabulary(), one_source(), ids, o, &log_probabilities)[0];
    ASSERT_EQ(log_probabilities.at(0).size(), 30u);
    SearchOptions search;
    search.suppress_ids = rules, search.no_repeat_ngram = 2;
    for (size_t k = 0; k < drawn.size(); ++k) {
      Prefix text = o.prefix;
      ASSERT_EQ(log_probabilities[0][k].size(), drawn[k].size());
      for (size_t i = 0; i < drawn[k].size(); ++i) {
        const int32_t t = drawn[k][i];
        EXPECT_NEAR(log_probabilities[0][k][i], log_softmax(m.logits(0, text))[t], 1e-5);
        text.push_back(t);
        EXPECT_TRUE(obeys(text, search)) << ::testing::PrintToString(text);
        EXPECT_NE(t, 0) << "the unknown symbol";
      }
      EXPECT_LE(drawn[k].size(), 6u);
    }
  }
}

TEST(SamplingOptions, AtAVeryLowTemperatureSamplesAreTheGreedyTranslation) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    FakeModel m = random_model(seed, 7, kOneSource, 1.0);
    SearchOptions greedy = options(1, 0, 0);
    greedy.min_length = static_cast<int64_t>(seed % 3);
    Prefix expected = beam_search(m, kOneSource, greedy)[0].at(0).tokens;
    const std::vector<int64_t> ids{static_cast<int64_t>(seed)};
    for (const int64_t top_k : {0, 5}) {
      SamplingOptions o{.samples = 3, .key = seed};
      o.top_k = top_k, o.temperature = 1e-3, o.min_length = greedy.min_length;
      const Samples drawn = sample_translations(m, m.vocabulary(), one_source(), ids, o)[0];
      for (Prefix tokens : drawn) {
        if (tokens.back() == kEnd) tokens.pop_back();
        EXPECT_EQ(tokens, expected) << "seed " << seed << " top " << top_k;
      }
    }
  }
}

// A model whose draws are told apart by their line: what a line gets depends neither on batches nor on threads.
TEST(SamplingOptions, ALineGetsTheSameInAnyBatchAndOnAnyThread) {
  ModelConfig config = model_preset("transformer-tiny");
  config.width = 16, config.feed_forward = 32, config.heads = 2, config.encoder_layers = config.decoder_layers = 1;
  const Vocabularies vocabularies = small_vocabulary();
  const std::vector<std::string> lines{"abba baab ab", "ab", "", "aa abba", "abba baab ab", "ba ba ba ba ba"};
  for (const int64_t top_k : {0, 5}) {
    std::vector<std::vector<std::string>> all;  // of each run, the texts of all samples
    for (const auto& [threads, batch, window] : {std::tuple(1, 64, 6), {2, 1, 6}, {3, 2, 2}, {1, 64, 3}}) {
      const auto backend = make_backend("cpu:f32", threads);
      const auto model = make_model(config, vocabularies.sizes(), *backend, 1, false);
      SearchOptions search;
      search.n_best = 3;
      Translator t(*model, vocabularies, search, batch);
      t.set_sampling({.key = 9, .top_k = top_k});
      std::vector<std::string>& texts = all.emplace_back();
      for (size_t begin = 0; begin < lines.size(); begin += static_cast<size_t>(window))
        for (const auto& list : t.translate(std::span(lines).subspan(begin, static_cast<size_t>(window))))
          for (const Translation& each : list) texts.push_back(fmt::format("{} {:.3f}", each.text, each.score));
      EXPECT_EQ(texts.size(), 3 * 5 + 1u) << "an empty line has one empty translation";
      EXPECT_EQ(texts, all.front()) << threads << " threads, batches of " << batch << ", windows of " << window;
      EXPECT_GE(t.work().rows, t.output_tokens());
    }
    EXPECT_NE(all[0][0], all[0][1]) << "samples of a line differ";
    EXPECT_NE(std::vector(all[0].begin(), all[0].begin() + 3), std::vector(all[0].begin() + 10, all[0].begin() + 13)) << "lines differ";
  }
}

}  // namespace
}  // namespace starling
