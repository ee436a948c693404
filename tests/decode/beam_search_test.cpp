// Beam search against exhaustive enumeration, and its invariances.
#include "decode/beam_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/random.h"
#include "tests/emulated/slow.h"

namespace starling {
namespace {

constexpr int32_t kVocabulary = 6;

ModelConfig small() {
  ModelConfig c = model_preset("transformer-tiny");
  c.encoder_layers = c.decoder_layers = 1, c.width = 16, c.feed_forward = 32, c.heads = 2, c.dropout = 0;
  return c;
}

class BeamSearchTest : public testing::Test {
 protected:
  BeamSearchTest() : backend_(make_backend("cpu:f32", 1)), model_(make_model(small(), vocabulary_, *backend_, 21, false)) {
    // Larger weights make a peaked, uneven distribution, so that the best sequence is not an accident of rounding.
    Random random(8, 8);
    std::vector<double> values = model_->parameters().values().to_doubles();
    for (double& v : values) v = 2.0 * v + 0.2 * random.normal();
    model_->parameters().values().from_doubles(values);
    model_->parameters().changed();
  }

  // Log-probability of a target (with end of sentence) by the training forward pass.
  double log_probability(const std::vector<int32_t>& source, const std::vector<int32_t>& target) {
    Batch batch;
    batch.source.append(source.data(), source.data() + source.size());
    batch.target.append(target.data(), target.data() + target.size());
    batch.sample_ids = {0};
    Arena arena(backend_->memory());
    Tape tape(model_->parameters(), arena);
    return -model_->loss(tape, batch, 0).read().nll;
  }

  ModelVocabulary vocabulary_{kVocabulary, kVocabulary};
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
};

TEST_F(BeamSearchTest, AWideBeamFindsTheBestOfAllSequences) {
  for (double alpha : {0.0, 1.0}) {
    const std::vector<int32_t> source{3, 5, 4, 2};
    const int64_t limit = unless_emulated(3, 2);
    SearchOptions o;
    o.beam = 400, o.length_penalty = alpha, o.max_length_factor = 0, o.max_length_offset = limit;
    const std::vector<std::vector<int32_t>> sources{source};
    const Hypothesis found = beam_search(*model_, sources, o)[0][0];

    double best = -INFINITY;
    std::vector<int32_t> best_tokens;
    std::function<void(std::vector<int32_t>)> visit = [&](std::vector<int32_t> prefix) {
      const auto consider = [&](const std::vector<int32_t>& target, const std::vector<int32_t>& tokens) {
        const double score = log_probability(source, target) / std::pow((5.0 + static_cast<double>(target.size())) / 6.0, alpha);
        if (score > best) best = score, best_tokens = tokens;
      };
      std::vector<int32_t> ended = prefix;
      ended.push_back(2);
      consider(ended, prefix);
      if (static_cast<int64_t>(prefix.size()) + 1 > limit - 1) {
        for (int32_t t = 0; t < kVocabulary; ++t) {  // cut at the limit, without end of sentence
          if (t == 2) continue;
          std::vector<int32_t> full = prefix;
          full.push_back(t);
          consider(full, full);
        }
        return;
      }
      for (int32_t t = 0; t < kVocabulary; ++t) {
        if (t == 2) continue;
        std::vector<int32_t> longer = prefix;
        longer.push_back(t);
        visit(longer);
      }
    };
    visit({});
    EXPECT_EQ(found.tokens, best_tokens) << "alpha " << alpha;
    EXPECT_NEAR(found.score, best, 1e-4);
  }
}

TEST_F(BeamSearchTest, BatchesGiveWhatSingleSentencesGive) {
  Random random(4, 4);
  std::vector<std::vector<int32_t>> sources;
  for (int i = 0; i < 9; ++i) {
    std::vector<int32_t> s(1 + random.below(8));
    for (auto& t : s) t = static_cast<int32_t>(3 + random.below(kVocabulary - 3));
    s.push_back(2);
    sources.push_back(s);
  }
  SearchOptions o;
  o.beam = 3, o.n_best = 3;
  const auto together = beam_search(*model_, sources, o);
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto alone = beam_search(*model_, std::span(&sources[i], 1), o)[0];
    ASSERT_EQ(alone.size(), together[i].size());
    for (size_t k = 0; k < alone.size(); ++k) {
      EXPECT_EQ(alone[k].tokens, together[i][k].tokens);
      EXPECT_NEAR(alone[k].score, together[i][k].score, 1e-4);
      if (k > 0) {
        EXPECT_LE(alone[k].score, alone[k - 1].score);
      }
    }
  }
}

TEST_F(BeamSearchTest, ReportsTheLogProbabilityOfItsResult) {
  const std::vector<std::vector<int32_t>> sources{{3, 4, 5, 3, 2}};
  SearchOptions o;
  o.beam = 4, o.n_best = 4, o.length_penalty = 0.6;
  const auto found = beam_search(*model_, sources, o);
  for (const Hypothesis& h : found[0]) {
    std::vector<int32_t> target = h.tokens;
    if (static_cast<int64_t>(target.size()) < 2 * 5 + 10) target.push_back(2);  // else it was cut at the limit
    EXPECT_NEAR(h.log_probability, log_probability(sources[0], target), 1e-4);
    EXPECT_NEAR(h.score, h.log_probability / std::pow((5.0 + static_cast<double>(target.size())) / 6.0, 0.6), 1e-9);
  }
}

TEST_F(BeamSearchTest, TheLimitHolds) {
  const std::vector<std::vector<int32_t>> sources{{3, 4, 2}};
  SearchOptions o;
  o.beam = 2, o.fixed_length = true, o.max_length_factor = 1, o.max_length_offset = 4;
  EXPECT_EQ(beam_search(*model_, sources, o)[0][0].tokens.size(), 7u);
}

// Preset and backend.
class ModelCoverage : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

// The coverage of each hypothesis against what the model attends to when it is led through the hypothesis alone.
TEST_P(ModelCoverage, IsTheAttentionOfTheHypothesisItself) {
  const auto [preset, spec] = GetParam();
  const auto backend = make_backend(spec, 1);
  ModelConfig config = model_preset(preset);
  config.encoder_layers = config.decoder_layers = 3;
  config.width = 16, config.feed_forward = 32, config.heads = config.heads == 1 ? 1 : 2;
  const ModelVocabulary vocabulary{kVocabulary, kVocabulary};
  const auto model = make_model(config, vocabulary, *backend, 5, false);
  std::vector<double> values = model->parameters().values().to_doubles();
  for (double& v : values) v *= config.heads == 1 ? 8 : 2;  // uneven predictions and attention
  model->parameters().values().from_doubles(values);
  model->parameters().changed();

  const std::vector<std::vector<int32_t>> sources{{3, 5, 4, 2}, {4, 2}, {5, 5, 3, 4, 3, 2}};
  SearchOptions o;
  o.beam = 4, o.n_best = 4, o.length_penalty = 0.2, o.coverage_penalty = 0.4, o.alignment = true;
  const auto found = beam_search(*model, sources, o);
  for (size_t s = 0; s < sources.size(); ++s)
    for (const Hypothesis& h : found[s]) {
      PackedTokens packed;
      packed.append(sources[s].data(), sources[s].data() + sources[s].size());
      const auto state = model->begin_decoding();
      const int32_t number = model->encode(*state, packed).at(0);
      std::vector<double> covered(sources[s].size());
      std::vector<int32_t> inputs{vocabulary.begin};
      inputs.insert(inputs.end(), h.tokens.begin(), h.tokens.end());
      inputs.resize(h.length);
      int32_t parent = -1;
      std::vector<int32_t> alignment;
      for (const int32_t token : inputs) {
        Tensor weights;
        model->next_output(*state, {&token, 1}, {&number, 1}, {&parent, 1}, &weights);
        parent = 0;
        const std::vector<double> attention = weights.to_doubles();
        double sum = 0;
        for (size_t i = 0; i < covered.size(); ++i) covered[i] += attention.at(i), sum += attention[i];
        alignment.push_back(static_cast<int32_t>(std::max_element(attention.begin(), attention.end()) - attention.begin()));
        EXPECT_NEAR(sum, 1, 1e-5);
      }
      double score = h.log_probability / std::pow((5.0 + static_cast<double>(h.length)) / 6.0, 0.2);
      for (const double c : covered) score += 0.4 * std::log(std::min(std::max(c, 1e-4), 1.0));
      EXPECT_NEAR(h.score, score, 1e-4);
      EXPECT_EQ(h.alignment, alignment);
    }
}

INSTANTIATE_TEST_SUITE_P(All, ModelCoverage,
                         testing::Combine(testing::Values("transformer-tiny", "gnmt-small"), testing::Values("reference", "cpu:f32")));

}  // namespace
}  // namespace starling
