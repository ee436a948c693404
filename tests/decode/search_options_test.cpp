// Options of a search beyond its scores: changed logits, ends that are replaced, least lengths, other ends, tokens as they come, attention.
// Expectations are written out by hand, or found by plain_search().
#include <gtest/gtest.h>

#include "tests/decode/plain_search.h"

namespace starling {
namespace {

// What changes logits: the same hypotheses as where each distribution is written out.
TEST(AdjustedScores, AreThoseOfTheChangedDistributions) {
  const Sources sources{{3, 4, kEnd}, {4, kEnd}, {5, 3, 4, 3, kEnd}};
  for (uint64_t seed = 0; seed < 40; ++seed) {
    FakeModel m = random_model(seed, 9, sources, 1.5);
    SearchOptions o = options(static_cast<int64_t>(1 + seed % 5), seed % 3 == 0 ? 0 : 0.6, 0);
    o.n_best = o.beam;
    if (seed % 2 == 0) o.repetition_penalty = seed % 4 == 0 ? 1.7 : 0.6;
    if (seed % 3 < 2) o.prefix_bias = 0.4, o.target_prefix_ids = {5, 3, 7};
    const auto found = beam_search(m, sources, o);
    for (size_t s = 0; s < sources.size(); ++s) {
      const auto expected = plain_search(m, static_cast<int32_t>(s), static_cast<int64_t>(sources[s].size()), o);
      ASSERT_EQ(found[s].size(), expected.size());
      for (size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(found[s][k].tokens, expected[k].tokens) << "seed " << seed;
        EXPECT_NEAR(found[s][k].score, expected[k].score, 1e-5);
      }
    }
  }
}

// Other sentences of the batch get what they get without one whose logits are changed, to the bit.
TEST(AdjustedScores, LeaveOtherSentencesAlone) {
  const Sources sources{{3, 4, kEnd}, {4, kEnd}};
  FakeModel m = random_model(3, 9, sources, 1.5);
  SearchOptions changed = options(4, 0.6, 0), usual = changed;
  changed.repetition_penalty = 2, usual.n_best = changed.n_best = 4;
  Search search(m);
  search.add(0, sources[0], changed);
  search.add(1, sources[1], usual);
  std::vector<Hypothesis> beside;
  while (!search.empty())
    for (Search::Finished& f : search.step())
      if (f.key == 1) beside = std::move(f.hypotheses);
  const std::vector<Hypothesis> alone = beam_search(m, sources, usual)[1];
  ASSERT_EQ(beside.size(), alone.size());
  for (size_t k = 0; k < alone.size(); ++k) {
    EXPECT_EQ(beside[k].tokens, alone[k].tokens);
    EXPECT_EQ(beside[k].log_probability, alone[k].log_probability);
  }
}

// A place that becomes free is taken: over many sentences lists are better than those of a beam that shrinks, and never much worse.
TEST(ReplacedHypotheses, MakeBetterLists) {
  const Sources sources{{3, 4, kEnd}};
  int better = 0, worse = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    FakeModel m = random_model(seed, 9, sources, 1.5);
    SearchOptions o = options(4, 0, 0);
    o.n_best = 4;
    const auto sum = [&](bool replace) {
      o.replace_ended = replace;
      double total = 0;
      const auto found = beam_search(m, sources, o);
      for (const Hypothesis& h : found[0]) total += h.score;
      return total;
    };
    const double with = sum(true), without = sum(false);
    better += with > without + 1e-6, worse += with < without - 1e-6;
  }
  EXPECT_GT(better, 60);
  EXPECT_LT(worse, 5);
}

// Pieces that show no text do not count, so that no translation is an empty line.
TEST(MinLength, CountsPiecesThatShowText) {
  constexpr int32_t blank = 5;
  FakeModel m(6);
  m.logits = [](int32_t, const Prefix& prefix) {
    std::vector<double> z(6, -100.0);
    z[kEnd] = 0, z[blank] = prefix.empty() ? 1 : -5, z[3] = -6;
    return z;
  };
  const Sources sources{{3, kEnd}};
  SearchOptions o = options(1, 0, 0);
  o.min_length = 0;
  EXPECT_EQ(beam_search(m, sources, o)[0].at(0).tokens, Prefix{blank});
  o.min_length = 1, o.blank_ids = {blank};
  const Prefix found = beam_search(m, sources, o)[0].at(0).tokens;
  EXPECT_EQ(std::count(found.begin(), found.end(), 3), 1);
  o.blank_ids.clear();
  EXPECT_EQ(beam_search(m, sources, o)[0].at(0).tokens, Prefix{blank});
  // Where the limit comes first, it holds.
  o.min_length = 50, o.max_length_factor = 0, o.max_length_offset = 4;
  EXPECT_EQ(beam_search(m, sources, o)[0].at(0).tokens.size(), 4u);
}

TEST(EndTokens, EndATranslationInPlaceOfTheEndOfSentence) {
  FakeModel m(6);
  m.logits = [](int32_t, const Prefix& prefix) {
    std::vector<double> z(6, -100.0);
    z[prefix.size() == 2 ? 4 : prefix.size() == 4 ? kEnd : 3] = 0;
    return z;
  };
  const Sources sources{{3, 3, kEnd}};
  SearchOptions o = options(2, 0, 0);
  EXPECT_EQ(beam_search(m, sources, o)[0].at(0).tokens, (Prefix{3, 3, 4, 3}));
  o.end_ids = {5, 4};
  const Hypothesis h = beam_search(m, sources, o)[0].at(0);
  EXPECT_EQ(h.tokens, (Prefix{3, 3}));
  EXPECT_EQ(h.end, 4);
  EXPECT_EQ(h.length, 3);
}

// Each token comes with its own log-probability, and the last one says so; whoever says stop gets what there is.
TEST(OnToken, TellsTheTokensOfTheGreedyTranslation) {
  const Sources sources{{3, 4, kEnd}};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FakeModel m = random_model(seed, 9, sources, 1.5);
    SearchOptions o = options(1, seed % 2 == 0 ? 0 : 0.6, 0);
    const Hypothesis expected = beam_search(m, sources, o)[0].at(0);
    for (const size_t most : {size_t{1000}, size_t{2}}) {
      std::vector<StepToken> told;
      Search search(m);
      search.add(0, sources[0], o, {}, [&](const StepToken& t) {
        told.push_back(t);
        return told.size() < most;
      });
      std::vector<Hypothesis> found;
      while (!search.empty())
        for (Search::Finished& f : search.step()) found = std::move(f.hypotheses);
      ASSERT_EQ(found.size(), 1u);
      double sum = 0;
      Prefix tokens;
      for (const StepToken& t : told) {
        sum += t.log_probability;
        if (!t.last || found[0].end < 0) tokens.push_back(t.token);
      }
      EXPECT_EQ(tokens, found[0].tokens);
      EXPECT_NEAR(sum, found[0].log_probability, 1e-5);
      if (most == 2 && expected.length > 2) {
        EXPECT_EQ(found[0].tokens, Prefix(expected.tokens.begin(), expected.tokens.begin() + 2));
      } else {
        EXPECT_EQ(found[0].tokens, expected.tokens);
        EXPECT_TRUE(told.back().last);
      }
    }
  }
}

// The rows are those that the model gave for the hypothesis' own prefixes.
TEST(Attention, IsThatOfTheHypothesisItself) {
  const Sources sources{{3, 4, 5, kEnd}};
  FakeModel m = random_model(5, 9, sources, 1.5);
  SearchOptions o = options(4, 0.6, 0);
  o.n_best = 4, o.attention = o.alignment = true;
  const auto found = beam_search(m, sources, o);
  for (const Hypothesis& h : found[0]) {
    ASSERT_EQ(static_cast<int64_t>(h.attention.size()), h.length);
    Prefix prefix;
    for (size_t t = 0; t < h.attention.size(); ++t) {
      EXPECT_EQ(h.attention[t], m.attention(0, prefix));
      EXPECT_EQ(std::max_element(h.attention[t].begin(), h.attention[t].end()) - h.attention[t].begin(), h.alignment[t]);
      if (t < h.tokens.size()) prefix.push_back(h.tokens[t]);
    }
  }
}

TEST(LengthLimit, IsRoundedUp) {
  EXPECT_EQ(length_limit(3, 0, 7), 21);
  EXPECT_EQ(length_limit(1.5, 0, 7), 11);
  EXPECT_EQ(length_limit(1.1, 0, 10), 11);
  EXPECT_EQ(length_limit(0, 256, 7), 256);
  EXPECT_EQ(length_limit(0, 0, 7), 1);
}

}  // namespace
}  // namespace starling
