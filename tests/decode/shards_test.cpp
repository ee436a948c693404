// Searches and samples of a model in shards: those of the whole model, on every worker.
#include <gtest/gtest.h>

#include <optional>

#include "decode/beam_search.h"
#include "decode/sampling.h"
#include "tests/ops/shard_threads.h"

namespace starling {
namespace {

const ModelVocabulary kVocabulary{50, 47};

ModelConfig small(const std::string& preset) {
  ModelConfig config = model_preset(preset);
  config.width = 16, config.feed_forward = 32, config.encoder_layers = 2, config.decoder_layers = 3;
  if (preset.starts_with("transformer")) config.heads = 4, config.tied_embeddings = TiedEmbeddings::decoder;
  return config;
}

const std::vector<std::vector<int32_t>> kSources{{4, 9, 21, 33, 7, 2}, {11, 5, 2}, {40, 41, 42, 43, 44, 45, 46, 2}};

struct Found {
  std::vector<std::vector<Hypothesis>> hypotheses;
  std::vector<Samples> samples;
};

Found search(const std::string& preset, ShardGroup* shards) {
  const auto backend = make_backend("reference");
  const auto model = make_model(small(preset), kVocabulary, *backend, 21, false, {{}, shards});
  SearchOptions options;
  options.beam = 5, options.n_best = 3, options.coverage_penalty = 0.2, options.length_penalty = 0.4, options.max_length_offset = 4;
  PackedTokens packed;
  for (const auto& s : kSources) packed.append(s.data(), s.data() + s.size());
  const std::vector<int64_t> ids{3, 4, 5};
  SamplingOptions sampling;
  sampling.samples = 4, sampling.key = 77;
  return {beam_search(*model, kSources, options), sample_translations(*model, kVocabulary, packed, ids, sampling)};
}

class DecodingInShards : public testing::TestWithParam<std::string> {};

TEST_P(DecodingInShards, FindsWhatTheWholeModelFinds) {
  const Found whole = search(GetParam(), nullptr);
  for (const int workers : {2, 4})
    ShardThreads(workers).run([&](ShardGroup& group) {
      const Found found = search(GetParam(), &group);
      ASSERT_EQ(found.hypotheses.size(), whole.hypotheses.size());
      for (size_t i = 0; i < whole.hypotheses.size(); ++i) {
        ASSERT_EQ(found.hypotheses[i].size(), whole.hypotheses[i].size());
        for (size_t n = 0; n < whole.hypotheses[i].size(); ++n) {
          EXPECT_EQ(found.hypotheses[i][n].tokens, whole.hypotheses[i][n].tokens) << "sentence " << i << ", hypothesis " << n;
          EXPECT_NEAR(found.hypotheses[i][n].score, whole.hypotheses[i][n].score, 1e-5);
        }
      }
      EXPECT_EQ(found.samples, whole.samples);
    });
}

INSTANTIATE_TEST_SUITE_P(Models, DecodingInShards, testing::Values("transformer-tiny", "gnmt-small"),
                         [](const auto& info) { return info.param.substr(0, info.param.find('-')); });

}  // namespace
}  // namespace starling
