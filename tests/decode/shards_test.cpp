// Searches and samples of a model in shards: those of the whole model, on every worker.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "decode/beam_search.h"
#include "decode/sampling.h"
#include "tests/ops/shard_threads.h"

namespace starling {
namespace {

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

Found search(const std::string& preset, ShardGroup* shards, int32_t unknown) {
  const ModelVocabulary vocabulary{.source_size = 50, .target_size = 47, .unknown = unknown};
  const auto backend = make_backend("reference");
  const auto model = make_model(small(preset), vocabulary, *backend, 21, false, {{}, shards});
  SearchOptions options;
  options.beam = 5, options.n_best = 3, options.coverage_penalty = 0.2, options.length_penalty = 0.4, options.max_length_offset = 4;
  PackedTokens packed;
  for (const auto& s : kSources) packed.append(s.data(), s.data() + s.size());
  const std::vector<int64_t> ids{3, 4, 5};
  SamplingOptions sampling;
  sampling.samples = 4, sampling.key = 77;
  return {beam_search(*model, kSources, options), sample_translations(*model, vocabulary, packed, ids, sampling)};
}

// The token that most hypotheses and samples have, the end of sentence left out.
int32_t most_frequent(const Found& found) {
  std::map<int32_t, int> counts;
  for (const auto& list : found.hypotheses)
    for (const Hypothesis& h : list)
      for (const int32_t t : h.tokens) ++counts[t];
  for (const auto& list : found.samples)
    for (const auto& tokens : list)
      for (const int32_t t : tokens) counts[t] += t != 2;
  return std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
}

bool has(const Found& found, int32_t token) {
  const auto in = [&](const std::vector<int32_t>& tokens) { return std::find(tokens.begin(), tokens.end(), token) != tokens.end(); };
  for (const auto& list : found.hypotheses)
    if (std::any_of(list.begin(), list.end(), [&](const Hypothesis& h) { return in(h.tokens); })) return true;
  return std::any_of(found.samples.begin(), found.samples.end(), [&](const Samples& s) { return std::any_of(s.begin(), s.end(), in); });
}

class DecodingInShards : public testing::TestWithParam<std::string> {
 protected:
  static void compare(int32_t unknown) {
    const Found whole = search(GetParam(), nullptr, unknown);
    for (const int workers : {2, 4})
      ShardThreads(workers).run([&](ShardGroup& group) {
        const Found found = search(GetParam(), &group, unknown);
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
};

TEST_P(DecodingInShards, FindsWhatTheWholeModelFinds) {
  const int32_t frequent = most_frequent(search(GetParam(), nullptr, -1));
  for (const int32_t unknown : {-1, 0, frequent}) compare(unknown);
  EXPECT_FALSE(has(search(GetParam(), nullptr, frequent), frequent));
}

INSTANTIATE_TEST_SUITE_P(Models, DecodingInShards, testing::Values("transformer-tiny", "gnmt-small"),
                         [](const auto& info) { return info.param.substr(0, info.param.find('-')); });

}  // namespace
}  // namespace starling
