// Sentences that join a search, leave it, and are dropped: what each gets is, bit for bit, what it gets alone.
#include "decode/search.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "decode/beam_search.h"
#include "decode/quantization.h"
#include "tests/decode/fake_model.h"
#include "tests/emulated/slow.h"

namespace starling {
namespace {

using Sources = std::vector<std::vector<int32_t>>;
using Results = std::map<int64_t, std::vector<Hypothesis>>;

constexpr int64_t kSearchVocabulary = 40;

struct JoinedKind {
  std::string name, preset, backend;
  NormPlace norm = NormPlace::pre;
  AttentionPlace place = AttentionPlace::bottom;
  bool int8 = false;
};

class JoiningSearch : public testing::TestWithParam<JoinedKind> {
 protected:
  void SetUp() override {
    if (GetParam().backend == "cpu:bf16" && !cpu_has_bf16()) GTEST_SKIP() << "no bf16";
    backend_ = make_backend(GetParam().backend, 1);
    ModelConfig c = model_preset(GetParam().preset);
    c.encoder_layers = c.decoder_layers = 2, c.width = 64, c.norm = GetParam().norm, c.attention_place = GetParam().place;
    if (c.attention_place == AttentionPlace::top) c.readout = Readout::context;
    if (c.heads > 1) c.heads = 4, c.feed_forward = 160;
    model_ = make_model(c, {kSearchVocabulary, kSearchVocabulary}, *backend_, 7, false);
    std::vector<double> values = model_->parameters().values().to_doubles();
    Random random(8, 8);
    for (double& v : values) v = 1.5 * v + 0.05 * random.normal();  // uneven predictions
    model_->parameters().values().from_doubles(values);
    model_->parameters().changed();
    if (GetParam().int8) quantize_all(*model_);
  }
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
};

Sources random_sources(size_t count, int64_t longest, uint64_t seed) {
  Random random(seed, seed);
  Sources sources(count);
  for (auto& s : sources) {
    s.resize(1 + random.below(static_cast<uint64_t>(longest)));
    for (int32_t& t : s) t = static_cast<int32_t>(3 + random.below(kSearchVocabulary - 3));
    s.back() = 2;
  }
  return sources;
}

// Different for every sentence.
SearchOptions options_of(size_t i) {
  SearchOptions o;
  o.beam = std::array<int64_t, 4>{4, 1, 4, 3}[i % 4];
  o.n_best = i % 3 == 0 ? o.beam : 1;
  o.length_penalty = 0.2 * static_cast<double>(i % 5);
  o.coverage_penalty = i % 4 == 2 ? 0.3 : 0;
  o.prune_threshold = i % 5 == 3 ? 2.5 : 0;
  o.max_length_factor = 1, o.max_length_offset = 3 + static_cast<int64_t>(i % 3);
  o.fixed_length = i % 7 == 5;
  o.alignment = i % 2 == 0;
  if (i % 6 == 1 || i % 6 == 4) {  // searched for twice, with a wider beam
    const std::vector<bool> no(kSearchVocabulary);
    const auto shapes = std::make_shared<PieceShapes>(PieceShapes{no, no});
    o.terms = std::make_shared<Terms>(std::vector<std::vector<Terms::Spelling>>{{{{7, 9}, false, true}}, {{{12}, false, true}}}, shapes);
    o.terms_beam = 5;
  }
  return o;
}

void expect_equal(const std::vector<Hypothesis>& found, const std::vector<Hypothesis>& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t n = 0; n < found.size(); ++n) {
    EXPECT_EQ(found[n].tokens, expected[n].tokens) << what << ", hypothesis " << n;
    EXPECT_EQ(found[n].length, expected[n].length) << what;
    EXPECT_EQ(found[n].log_probability, expected[n].log_probability) << what << ", hypothesis " << n;
    EXPECT_EQ(found[n].score, expected[n].score) << what << ", hypothesis " << n;
    EXPECT_EQ(found[n].alignment, expected[n].alignment) << what;
  }
}

// Sentence i joins before step `when[i]`.
Results search(Model& model, const Sources& sources, const std::vector<int64_t>& when) {
  Search search(model);
  Results results;
  for (int64_t step = 0;; ++step) {
    bool more = false;
    for (size_t i = 0; i < sources.size(); ++i) {
      if (when[i] == step) search.add(static_cast<int64_t>(i), sources[i], options_of(i));
      more = more || when[i] > step;
    }
    for (Search::Finished& f : search.step()) EXPECT_TRUE(results.emplace(f.key, std::move(f.hypotheses)).second);
    if (!more && search.empty()) return results;
  }
}

TEST_P(JoiningSearch, WhatASentenceGetsIsBitForBitWhatItGetsAlone) {
  const Sources sources = random_sources(unless_emulated<size_t>(36, 8), unless_emulated(11, 6), 5);
  Results alone;
  for (size_t i = 0; i < sources.size(); ++i)
    alone[static_cast<int64_t>(i)] = beam_search(*model_, std::span(&sources[i], 1), options_of(i))[0];

  std::vector<std::vector<int64_t>> arrivals{std::vector<int64_t>(sources.size(), 0)};  // all together: 106 rows
  for (uint64_t seed = 1; seed <= unless_emulated<uint64_t>(3, 1); ++seed) {
    Random random(seed, 9);
    arrivals.emplace_back();
    for (size_t i = 0; i < sources.size(); ++i) arrivals.back().push_back(static_cast<int64_t>(random.below(seed == 3 ? 60 : 14)));
  }
  for (size_t a = 0; a < arrivals.size(); ++a) {
    const Results found = search(*model_, sources, arrivals[a]);
    ASSERT_EQ(found.size(), sources.size());
    for (const auto& [key, hypotheses] : found) {
      expect_equal(hypotheses, alone[key],
                   fmt::format("arrivals {}, sentence {} at step {}", a, key, arrivals[a][static_cast<size_t>(key)]));
      for (const Hypothesis& h : hypotheses)
        EXPECT_EQ(h.alignment.size(), options_of(static_cast<size_t>(key)).alignment ? static_cast<size_t>(h.length) : 0);
    }
  }
}

// A sentence that may be searched for once more takes the rows of that from the beginning.
TEST_P(JoiningSearch, TermsAreThereAndTheirRowsAreCounted) {
  const Sources sources = random_sources(6, 8, 11);
  SearchOptions o = options_of(1);
  o.beam = 2, o.n_best = 1, o.fixed_length = false, o.max_length_offset = 8;
  ASSERT_TRUE(o.terms);
  Search search(*model_);
  for (size_t i = 0; i < sources.size(); ++i) search.add(static_cast<int64_t>(i), sources[i], o);
  size_t found = 0;
  for (bool first = true; !search.empty(); first = false) {
    for (const Search::Finished& f : search.step()) {
      const std::vector<int32_t>& tokens = f.hypotheses.front().tokens;
      EXPECT_EQ(f.hypotheses.front().missing_terms, 0);
      EXPECT_FALSE(std::ranges::search(tokens, std::vector<int32_t>{7, 9}).empty()) << f.key;
      EXPECT_EQ(std::ranges::count(tokens, 12) > 0, true) << f.key;
      ++found;
    }
    if (first) {
      EXPECT_EQ(search.rows(), 6 * o.terms_beam);
    }
  }
  EXPECT_EQ(found, sources.size());
}

TEST_P(JoiningSearch, DroppedSentencesLeaveTheOthersAsTheyWere) {
  const Sources sources = random_sources(8, 9, 6);
  SearchOptions o;
  o.beam = 3, o.fixed_length = true, o.max_length_factor = 1, o.max_length_offset = 4;
  const auto alone = [&](size_t i) { return beam_search(*model_, std::span(&sources[i], 1), o)[0]; };
  Search search(*model_);
  Results results;
  const auto step = [&] {
    for (Search::Finished& f : search.step()) results[f.key] = std::move(f.hypotheses);
  };
  for (size_t i = 0; i < 4; ++i) search.add(static_cast<int64_t>(i), sources[i], o);
  EXPECT_EQ(search.rows(), 12);
  search.drop(2);  // before it has begun
  EXPECT_EQ(search.rows(), 9);
  step(), step();
  EXPECT_EQ(search.rows(), 9);
  search.drop(0), search.drop(77);
  EXPECT_EQ(search.rows(), 6);
  for (size_t i = 4; i < 8; ++i) search.add(static_cast<int64_t>(i), sources[i], o);  // where the dropped one was
  step();
  search.drop(5);
  while (!search.empty()) step();
  EXPECT_EQ(search.rows(), 0);
  EXPECT_TRUE(search.step().empty());
  std::vector<int64_t> keys;
  for (const auto& [key, hypotheses] : results) {
    keys.push_back(key);
    expect_equal(hypotheses, alone(static_cast<size_t>(key)), fmt::format("sentence {}", key));
  }
  EXPECT_EQ(keys, (std::vector<int64_t>{1, 3, 4, 6, 7}));
}

// A thousand sentences, of which four are under way at a time: sources and prefixes take rows of those that have gone.
TEST_P(JoiningSearch, AThousandSentencesTakeNoMoreMemoryThanThoseUnderWay) {
  const size_t count = unless_emulated<size_t>(1000, 80);
  const Sources sources = random_sources(count, unless_emulated(12, 5), 11);
  SearchOptions o;
  o.beam = 2, o.fixed_length = true, o.max_length_factor = 1, o.max_length_offset = 2;
  Search search(*model_);
  size_t next = 0, ended = 0;
  int64_t first_half = 0, second_half = 0, prefix_rows = 0, source_rows = 0;
  while (ended < count) {
    for (; next < count && search.rows() < 8; ++next) {
      search.add(static_cast<int64_t>(next), sources[next], o);
      source_rows += static_cast<int64_t>(sources[next].size()), prefix_rows += 2 * static_cast<int64_t>(sources[next].size() + 2);
    }
    ended += search.step().size();
    int64_t& most = ended < count / 2 ? first_half : second_half;
    most = std::max(most, search.bytes());
  }
  EXPECT_GT(first_half, 0);
  EXPECT_LE(static_cast<double>(second_half), 1.05 * static_cast<double>(first_half)) << "it grew";
  // Keys and values of all of them, had they been kept.
  const int64_t kept = 2 * 2 * 64 * size_of(backend_->activation()) * (source_rows + (model_->config().heads > 1 ? prefix_rows : 0));
  if (unless_emulated(true, false)) {
    EXPECT_LT(second_half, kept / 5);  // fewer fit into the first tables
  }
}

const JoinedKind kKinds[] = {
    {"PreNormF32", "transformer-tiny", "cpu:f32", NormPlace::pre},
    {"PostNormBf16", "transformer-tiny", "cpu:bf16", NormPlace::post},
    {"PostNormInt8", "transformer-tiny", "cpu:f32", NormPlace::post, {}, true},
    {"PreNormInt8Bf16", "transformer-tiny", "cpu:bf16", NormPlace::pre, {}, true},
    {"GnmtBottomF32", "gnmt-small", "cpu:f32", {}, AttentionPlace::bottom},
    {"GnmtTopBf16", "gnmt-small", "cpu:bf16", {}, AttentionPlace::top},
    {"GnmtTopInt8", "gnmt-small", "cpu:f32", {}, AttentionPlace::top, true},
    {"GnmtBottomInt8Bf16", "gnmt-small", "cpu:bf16", {}, AttentionPlace::bottom, true},
};
INSTANTIATE_TEST_SUITE_P(All, JoiningSearch, testing::ValuesIn(kKinds), [](const auto& info) { return info.param.name; });

// By hand: token t after a prefix of length n pays most attention to source token rows[n][..]'s largest, the first of equal ones.
TEST(Alignment, IsTheSourceTokenWithTheMostAttentionEndOfSentenceIncluded) {
  FakeModel model(6);
  const FakeModel::Prefix target{4, 3, 5};
  model.logits = [&](int32_t, const FakeModel::Prefix& prefix) {
    std::vector<double> z(6, -50.0);
    z[static_cast<size_t>(prefix.size() < target.size() ? target[prefix.size()] : 2)] = 0;
    return z;
  };
  const std::vector<std::vector<float>> rows{{0.1f, 0.7f, 0.2f}, {0.4f, 0.2f, 0.4f}, {0.1f, 0.2f, 0.7f}, {0.3f, 0.6f, 0.1f}};
  model.attention = [&](int32_t, const FakeModel::Prefix& prefix) { return rows.at(std::min(prefix.size(), rows.size() - 1)); };
  const Sources sources{{3, 4, 2}};
  SearchOptions o;
  o.beam = 1, o.alignment = true;
  Hypothesis h = beam_search(model, sources, o)[0].at(0);
  EXPECT_EQ(h.tokens, target);
  EXPECT_EQ(h.alignment, (std::vector<int32_t>{1, 0, 2, 1}));
  o.max_length_factor = 0, o.max_length_offset = 2;  // cut: no end of sentence
  h = beam_search(model, sources, o)[0].at(0);
  EXPECT_EQ(h.tokens, (FakeModel::Prefix{4, 3}));
  EXPECT_EQ(h.alignment, (std::vector<int32_t>{1, 0}));
  o.alignment = false;
  model.attention_calls = 0;
  EXPECT_TRUE(beam_search(model, sources, o)[0].at(0).alignment.empty());
  EXPECT_EQ(model.attention_calls, 0);
}

}  // namespace
}  // namespace starling
