// Ensembles against a search over the models' own functions, and against their models alone.
#include "decode/ensemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "decode/translator.h"
#include "tests/decode/plain_search.h"
#include "tests/decode/small_vocabulary.h"

namespace starling {
namespace {

using ::testing::HasSubstr;

const Sources kEnsembleSources{{3, 4, kEnd}, {4, kEnd}, {5, 3, 4, 3, kEnd}};

// The mean of the models' log-probabilities, renormalised by whoever takes the softmax of it.
Logits mean_of(const std::vector<FakeModel*>& models, const std::vector<double>& weights = {}) {
  return [models, weights](int32_t sentence, const Prefix& prefix) {
    std::vector<double> mean(static_cast<size_t>(models[0]->vocabulary().target_size));
    for (size_t m = 0; m < models.size(); ++m) {
      const std::vector<double> each = log_softmax(models[m]->logits(sentence, prefix));
      const double weight = weights.empty() ? 1 / static_cast<double>(models.size()) : weights[m];
      for (size_t t = 0; t < mean.size(); ++t) mean[t] += weight * each[t];
    }
    return mean;
  };
}

std::vector<std::vector<Hypothesis>> search_together(const std::vector<FakeModel*>& models, const SearchOptions& o,
                                                     SearchWork* work = nullptr, const std::vector<double>& weights = {}) {
  const std::vector<Model*> all(models.begin(), models.end());
  const std::vector<Sources> sources(models.size(), kEnsembleSources);
  return beam_search({all, weights}, sources, std::span(&o, 1), work);
}

TEST(Ensemble, FindsWhatASearchOfTheMeanFinds) {
  bool differs = false;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const std::shared_ptr<Backend> backend = make_backend("reference");
    std::deque<FakeModel> models;
    std::vector<FakeModel*> used;
    for (uint64_t m = 0; m < 2 + seed % 3; ++m) {
      used.push_back(&models.emplace_back(7, 0, -1, backend));
      used.back()->logits = random_model(100 * seed + m, 7, kEnsembleSources, 1.5).logits;
    }
    SearchOptions o = options(static_cast<int64_t>(1 + seed % 5), 0.6, 0);
    o.n_best = seed % 2 == 0 ? o.beam : 1;
    o.no_repeat_ngram = seed % 5 == 4 ? 2 : 0;
    const std::vector<double> weights = seed % 3 == 0 && used.size() == 2 ? std::vector{0.7, 0.3} : std::vector<double>();
    const auto found = search_together(used, o, nullptr, weights);
    for (size_t s = 0; s < kEnsembleSources.size(); ++s) {
      const auto expected =
          plain_search(models[0], static_cast<int32_t>(s), static_cast<int64_t>(kEnsembleSources[s].size()), o, mean_of(used, weights));
      ASSERT_EQ(found[s].size(), expected.size()) << "seed " << seed;
      for (size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(found[s][k].tokens, expected[k].tokens) << "seed " << seed;
        EXPECT_NEAR(found[s][k].log_probability, expected[k].log_probability, 1e-5);
      }
      differs |= found[s].front().tokens != beam_search(models[0], kEnsembleSources, o)[s].front().tokens;
    }
  }
  EXPECT_TRUE(differs) << "the first model alone finds the same";
}

TEST(Ensemble, OfAModelWithItselfIsTheModel) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    FakeModel m = random_model(seed, 9, kEnsembleSources, 1.0);
    SearchOptions o = options(4, 0.6, 0.2);
    o.n_best = 4, o.alignment = true;
    o.target_prefix_ids = {4, 5};  // steps whose tokens are given are steps of all models
    const auto alone = beam_search(m, kEnsembleSources, o), twice = search_together({&m, &m}, o);
    for (size_t s = 0; s < alone.size(); ++s) {
      ASSERT_EQ(twice[s].size(), alone[s].size());
      for (size_t k = 0; k < alone[s].size(); ++k) {
        EXPECT_EQ(twice[s][k].tokens, alone[s][k].tokens);
        EXPECT_EQ(twice[s][k].log_probability, alone[s][k].log_probability);
        EXPECT_EQ(twice[s][k].score, alone[s][k].score);
        EXPECT_EQ(twice[s][k].alignment, alone[s][k].alignment);
      }
    }
  }
}

// Models of other kinds, whose sources have other lengths: each reads its own.
TEST(Ensemble, EachModelReadsItsOwnSources) {
  const auto backend = make_backend("cpu:f32", 1);
  std::vector<std::unique_ptr<Model>> models;
  std::vector<Model*> used;
  for (const char* preset : {"transformer-tiny", "gnmt-small"}) {
    ModelConfig c = model_preset(preset);
    c.width = 32, c.encoder_layers = c.decoder_layers = 2, c.tied_embeddings = TiedEmbeddings::decoder;
    if (c.heads > 1) c.heads = 2, c.feed_forward = 64, c.decoder_start = DecoderStart::end;  // each begins in its own way
    used.push_back(models.emplace_back(make_model(c, {used.empty() ? 12 : 20, 15}, *backend, 5, false)).get());
  }
  const std::vector<Sources> sources{{{3, 4, 5, 2}, {6, 2}, {3, 3, 2}}, {{19, 2}, {17, 18, 16, 15, 14, 13, 2}, {3, 3, 3, 2}}};
  SearchOptions o = options(3, 0.6, 0);
  o.max_length_factor = 0, o.max_length_offset = 6;
  const auto together = beam_search({used, {}}, sources, std::span(&o, 1));
  for (size_t s = 0; s < 3; ++s) {
    const std::vector<Sources> one{{sources[0][s]}, {sources[1][s]}};
    const Hypothesis alone = beam_search({used, {}}, one, std::span(&o, 1))[0].at(0);
    EXPECT_EQ(together[s].at(0).tokens, alone.tokens) << s;
    EXPECT_EQ(together[s].at(0).log_probability, alone.log_probability) << s;
    // The log-probability is that of the tokens by both models, whatever the search did on the way.
    Prefix target = alone.tokens;
    if (alone.length > static_cast<int64_t>(target.size())) target.push_back(kEnd);
    double expected = 0;
    std::vector<std::unique_ptr<DecodeState>> states;
    std::vector<int32_t> numbers;
    for (size_t m = 0; m < 2; ++m) {
      states.push_back(used[m]->begin_decoding());
      PackedTokens packed;
      packed.append(sources[m][s].data(), sources[m][s].data() + sources[m][s].size());
      numbers.push_back(used[m]->encode(*states[m], packed).at(0));
    }
    for (size_t t = 0; t < target.size(); ++t) {
      std::vector<double> mean(15);
      for (size_t m = 0; m < 2; ++m) {
        const std::vector<int32_t> token{t == 0 ? used[m]->vocabulary().begin : target[t - 1]}, sentence{numbers[m]},
            parent{t == 0 ? -1 : 0};
        const std::vector<double> each =
            log_softmax(logits_of(*backend, used[m]->next_output(*states[m], token, sentence, parent)).to_doubles());
        for (size_t v = 0; v < 15; ++v) mean[v] += each[v] / 2;
      }
      expected += log_softmax(mean)[static_cast<size_t>(target[t])];
    }
    EXPECT_NEAR(alone.log_probability, expected, 1e-4) << s;
  }
}

class EnsembleTranslator : public testing::Test {
 protected:
  std::unique_ptr<Model> model(uint64_t seed) const {
    ModelConfig config = model_preset("transformer-tiny");
    config.width = 16, config.feed_forward = 32, config.heads = 2, config.encoder_layers = config.decoder_layers = 1;
    return make_model(config, vocabularies_.sizes(), *backend_, seed, false);
  }
  static std::vector<std::string> texts(Translator& t, const std::vector<std::string>& lines) {
    std::vector<std::string> all;
    for (const auto& list : t.translate(lines)) all.push_back(list.front().text);
    return all;
  }
  const Vocabularies vocabularies_ = small_vocabulary();
  const std::unique_ptr<Backend> backend_ = make_backend("cpu:f32", 2);
};

TEST_F(EnsembleTranslator, TranslatesLinesWithAllModels) {
  const auto first = model(1), second = model(2);
  const std::vector<std::string> lines{"abba baab", "", "ab", "aa ab ba abba"};
  SearchOptions search;
  search.max_length_factor = 0, search.max_length_offset = 6;
  Translator alone(*first, vocabularies_, search),
      twice(*first, vocabularies_, search, 2, 1000, nullptr, {{first.get(), &vocabularies_, ""}}),
      both(*first, vocabularies_, search, 64, 1000, nullptr, {{second.get(), &vocabularies_, ""}}),
      others_first(*second, vocabularies_, search, 1, 1000, nullptr, {{first.get(), &vocabularies_, ""}});
  EXPECT_EQ(texts(twice, lines), texts(alone, lines));
  EXPECT_EQ(texts(both, lines), texts(others_first, lines)) << "the mean has no order";
  EXPECT_NE(texts(both, lines), texts(alone, lines));
}

TEST_F(EnsembleTranslator, MoreModelsNeedMoreMemory) {
  const auto first = model(1), second = model(2);
  const std::vector<std::string> lines{"abba baab"};
  const auto granted = [&](const std::vector<EnsembleMember>& others) {
    int64_t too_few = 0, enough = 4 << 20;
    while (enough - too_few > 256) {
      const int64_t bytes = (too_few + enough) / 2;
      Translator t(*first, vocabularies_, {}, 64, 1000, nullptr, others);
      t.set_memory({.processes = 1, .fewer_at_once = false, .usable = [bytes] { return UsableMemory{bytes, "the test's bound"}; }});
      try {
        t.translate(lines);
        enough = bytes;
      } catch (const ConfigError&) {
        too_few = bytes;
      }
    }
    return enough;
  };
  const int64_t one = granted({}), two = granted({{second.get(), &vocabularies_, ""}});
  EXPECT_GT(two, one);
  EXPECT_LT(two, 3 * one);
}

}  // namespace
}  // namespace starling
