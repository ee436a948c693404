// Pieces, sequences and repetitions that translations must not contain, against searches that look at every continuation.
#include "decode/forbidden_tokens.h"

#include <gmock/gmock.h>

#include "decode/framing.h"
#include "tests/decode/plain_search.h"

namespace starling {
namespace {

TEST(ForbiddenTokens, FollowWhatStandsBefore) {
  const auto after = [](const Sequences& sequences, int64_t ngram, const Prefix& prefix) {
    std::vector<int32_t> tokens{99};  // of the row before
    ForbiddenTokens(sequences, ngram).append_after(prefix, tokens);
    EXPECT_EQ(tokens.front(), 99);
    return Prefix(tokens.begin() + 1, tokens.end());
  };
  const Sequences sequences{{7}, {3, 4}, {5, 3, 9}, {5, 3, 4}, {7}, {6}};
  EXPECT_EQ(ForbiddenTokens(sequences, 0).always(), (Prefix{6, 7}));
  EXPECT_EQ(after(sequences, 0, {}), Prefix());
  EXPECT_EQ(after(sequences, 0, {3}), Prefix{4});
  EXPECT_EQ(after(sequences, 0, {5, 3}), (Prefix{4, 9}));
  EXPECT_EQ(after(sequences, 0, {3, 5}), Prefix());
  EXPECT_EQ(after({}, 1, {4, 3, 4}), (Prefix{3, 4}));
  EXPECT_EQ(after({}, 2, {4, 3, 4}), Prefix{3});
  EXPECT_EQ(after({}, 2, {4, 4}), Prefix{4});
  EXPECT_EQ(after({}, 3, {4, 3, 8, 4, 3, 9, 4, 3}), (Prefix{8, 9}));
  EXPECT_EQ(after({}, 3, {4, 3}), Prefix());
  EXPECT_FALSE(ForbiddenTokens(Sequences{{7}}, 0).depend_on_prefix());
  EXPECT_EQ(ForbiddenTokens(sequences, 2).most_after(5), 3 + 4);
}

// The same hypotheses with the same scores, to the bit, as a search that sorts all continuations and drops those that break the rules.
TEST(ForbiddenTokens, TheSearchFindsWhatTheSearchOverAllContinuationsFinds) {
  const Sources sources{{3, 4, kEnd}, {4, kEnd}, {5, 3, 4, 3, kEnd}};
  bool differs = false;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    FakeModel m = random_model(seed, 7, sources, 1.0, seed % 2 == 0, static_cast<int32_t>(seed % 3) * 6 - 6);  // -6: there is none
    SearchOptions o = options(static_cast<int64_t>(1 + seed % 6), seed % 3 == 0 ? 0 : 0.6, 0);
    o.n_best = seed % 5 == 0 ? o.beam : 1;
    o.fixed_length = seed % 7 == 0;
    const SearchOptions free = o;
    if (seed % 4 != 1) o.suppress_ids = {{static_cast<int32_t>(3 + seed % 4)}, {4, 5}, {5, 4, 4}, {3, 4, 3}};
    o.no_repeat_ngram = static_cast<int64_t>(seed / 4 % 4);
    const auto found = beam_search(m, sources, o);
    for (size_t s = 0; s < sources.size(); ++s) {
      const auto expected = plain_search(m, static_cast<int32_t>(s), static_cast<int64_t>(sources[s].size()), o);
      ASSERT_EQ(found[s].size(), expected.size()) << "seed " << seed;
      differs |= found[s].front().tokens != beam_search(m, sources, free)[s].front().tokens;
      for (size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(found[s][k].tokens, expected[k].tokens) << "seed " << seed;
        EXPECT_EQ(found[s][k].log_probability, expected[k].log_probability);
        EXPECT_DOUBLE_EQ(found[s][k].score, expected[k].score);
      }
    }
  }
  EXPECT_TRUE(differs) << "the rules changed nothing";
}

// Sentences with rules of their own do not change what the others get.
TEST(ForbiddenTokens, HoldForTheirSentenceOnly) {
  const Sources sources{{3, 4, kEnd}, {3, 4, kEnd}, {4, kEnd}};
  FakeModel m = random_model(3, 8, sources, 1.0);
  std::vector<SearchOptions> each(3, options(3, 0.6, 0));
  each[0].no_repeat_ngram = 1;
  each[2].suppress_ids = {{3, 4}, {5}};
  Search search(m);
  for (size_t s = 0; s < 3; ++s) search.add(static_cast<int64_t>(s), sources[s], each[s]);
  size_t ended = 0;
  while (!search.empty())
    for (const Search::Finished& f : search.step()) {
      const auto expected = plain_search(m, static_cast<int32_t>(f.key), static_cast<int64_t>(sources[f.key].size()), each[f.key]);
      EXPECT_EQ(f.hypotheses.at(0).tokens, expected.at(0).tokens) << f.key;
      ++ended;
    }
  EXPECT_EQ(ended, 3u);
}

// Without end of sentence there are four tokens, of which no pair may come twice: no fixed length can be reached by them.
TEST(ForbiddenTokens, ATranslationMayEndWhereAllTokensAreForbidden) {
  const Sources sources{{3, kEnd}};
  FakeModel m = random_model(5, 5, sources, 1.0);
  SearchOptions o = options(2, 0, 0);
  o.fixed_length = true, o.max_length_offset = 30, o.no_repeat_ngram = 1;
  const Hypothesis h = beam_search(m, sources, o)[0].at(0);
  EXPECT_EQ(h.tokens.size(), 4u);
  EXPECT_EQ(h.length, 5);
  o.suppress_ids = {{0}, {1}, {3}, {4}};
  EXPECT_TRUE(beam_search(m, sources, o)[0].at(0).tokens.empty());
}

// The pieces of a forced prefix are part of the translation for the rules, but not subject to them.
TEST(ForbiddenTokens, PrefixesCountAsPartOfTheTranslation) {
  const Sources sources{{3, kEnd}};
  FakeModel m(7);
  m.logits = [](int32_t, const Prefix& prefix) {
    std::vector<double> z(7, -50.0);
    z[prefix.size() < 5 ? 4 : kEnd] = 0, z[5] = -1, z[6] = -2;
    return z;
  };
  SearchOptions o = options(1, 0, 0);
  o.target_prefix_ids = {4, 4};
  o.no_repeat_ngram = 2;
  EXPECT_EQ(beam_search(m, sources, o)[0].at(0).tokens, (Prefix{5, 4, 6}));  // after 4 4, again 4 4 is forbidden, then 4 5
  o.no_repeat_ngram = 0;
  o.suppress_ids = {{4, 5}, {4, 4}};
  EXPECT_EQ(beam_search(m, sources, o)[0].at(0).tokens, (Prefix{6, 4, 6}));
}

}  // namespace
}  // namespace starling
