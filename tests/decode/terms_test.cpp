// Terms that translations must contain: how hypotheses are followed, and that searches find what an enumeration finds.
#include "decode/terms.h"

#include <gmock/gmock.h>

#include "tests/decode/plain_search.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using Spellings = std::vector<Terms::Spelling>;

// Tokens 3 to 5 begin words, 6 and 7 go on with them, 8 is a mark; the rest is special.
std::shared_ptr<const PieceShapes> shapes() {
  return std::make_shared<PieceShapes>(PieceShapes{.continues = {false, false, false, false, false, false, true, true, false},
                                                   .opens = {false, false, false, false, false, false, false, false, true}});
}
Terms::State after(const Terms& terms, const std::vector<int32_t>& tokens) {
  Terms::State state;
  for (const int32_t token : tokens) state = terms.after(state, token);
  return state;
}
std::vector<int32_t> next(const Terms& terms, const std::vector<int32_t>& tokens) {
  std::vector<int32_t> all;
  terms.append_next(after(terms, tokens), all);
  return all;
}

TEST(Terms, AreThereAsWholeWordsOnly) {
  const Terms terms({{{{3, 6}}}}, shapes());
  const auto complete = [&](const std::vector<int32_t>& tokens) { return terms.complete(after(terms, tokens)); };
  EXPECT_FALSE(complete({}));
  EXPECT_FALSE(complete({3}));
  EXPECT_TRUE(complete({3, 6}));
  EXPECT_FALSE(complete({3, 6, 7})) << "a longer word";
  EXPECT_TRUE(complete({3, 6, 8}));
  EXPECT_TRUE(complete({3, 6, 4, 7}));
  EXPECT_TRUE(complete({3, 3, 6}));
  EXPECT_TRUE(complete({3, 6, 7, 3, 6}));
  EXPECT_FALSE(complete({4, 3, 7, 6}));
}

TEST(Terms, HaveAnyOfTheirSpellings) {
  const Terms terms({{{{3, 6}}, {{3, 6, 7}}, {{4}}}}, shapes());
  for (const std::vector<int32_t>& tokens : std::vector<std::vector<int32_t>>{{3, 6}, {3, 6, 7}, {4}, {5, 4, 8}})
    EXPECT_TRUE(terms.complete(after(terms, tokens))) << testing::PrintToString(tokens);
  EXPECT_FALSE(terms.complete(after(terms, {3, 6, 6})));
  EXPECT_EQ(terms.longest(), 3);
  EXPECT_EQ(terms.progress(after(terms, {4})), 3) << "counted by the longest";
  EXPECT_EQ(terms.progress(after(terms, {3})), 1);
}

TEST(Terms, BeginWithoutASpaceBehindMarksOnly) {
  const Terms terms({{{{3}}, {{6}, true}}}, shapes());
  EXPECT_TRUE(terms.complete(after(terms, {8, 6})));
  EXPECT_TRUE(terms.complete(after(terms, {6}))) << "at the beginning";
  EXPECT_FALSE(terms.complete(after(terms, {4, 6})));
  const Terms loose({{{{3}, false, true}, {{6}, true, true}}}, shapes());  // a script without spaces
  EXPECT_TRUE(loose.complete(after(loose, {4, 6, 7})));
}

TEST(Terms, OfTheSameNameAreCountedOneByOne) {
  const Terms terms({{{{3, 6}}}, {{{3, 6}}}, {{{4}}}}, shapes());
  EXPECT_EQ(terms.missing(after(terms, {3, 6})), 2);
  EXPECT_EQ(terms.missing(after(terms, {3, 6, 3, 6})), 1);
  EXPECT_EQ(terms.missing(after(terms, {3, 6, 3, 6, 4})), 0);
  EXPECT_THAT(next(terms, {}), UnorderedElementsAre(3, 4));
  EXPECT_THAT(next(terms, {5, 3}), ElementsAre(6)) << "one that has begun goes on";
  EXPECT_THAT(next(terms, {3, 6, 3, 6}), ElementsAre(4));
  EXPECT_THAT(next(terms, {3, 6, 4, 3, 6}), ElementsAre());
}

TEST(Terms, AreSaidBeforeTheSentenceEnds) {
  auto with_marks = std::make_shared<PieceShapes>(*shapes());
  with_marks->ends = {false, false, false, false, false, false, false, false, true};
  with_marks->counts = {false, false, false, false, false, true, false, false, false};
  const Terms terms({{{{3, 6}}}}, with_marks);
  EXPECT_TRUE(terms.ends_too_early(after(terms, {4}), 8));
  EXPECT_FALSE(terms.ends_too_early(after(terms, {4}), 4));
  EXPECT_FALSE(terms.ends_too_early(after(terms, {5}), 8)) << "3.";
  EXPECT_FALSE(terms.ends_too_early(after(terms, {3, 6}), 8));
}

bool contains(const std::vector<int32_t>& tokens, const std::vector<int32_t>& part) { return !std::ranges::search(tokens, part).empty(); }

// The best translation of at most five tokens that has the terms, by trying all; the search has a place for each.
TEST(Terms, TheSearchFindsTheBestThatHasThem) {
  constexpr int64_t kVocabulary = 6, kLongest = 5;
  const auto loose = std::make_shared<PieceShapes>(PieceShapes{std::vector<bool>(kVocabulary), std::vector<bool>(kVocabulary, true)});
  const Sources sources{{3, kEnd}};
  int changed = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    FakeModel model = random_model(seed, kVocabulary, sources, 2);
    const Logits logits = [own = model.logits](int32_t, const Prefix& prefix) { return own(0, prefix); };
    model.logits = logits;  // a second search is of the same sentence
    Random random(seed, 3);
    const auto token = [&] { return static_cast<int32_t>(3 + random.below(3)); };
    const std::vector<int32_t> one{token(), token()}, other{token()}, third{token(), token(), token()};
    SearchOptions o = options(4, seed % 2 == 0 ? 0.6 : 0, 0);
    o.max_length_factor = 0, o.max_length_offset = kLongest, o.allow_unknown = true;
    const Hypothesis without = beam_search(model, sources, o)[0][0];
    o.terms = std::make_shared<Terms>(std::vector<Spellings>{{{one, false, true}, {third, false, true}}, {{other, false, true}}}, loose);
    o.terms_beam = 5000;
    const Hypothesis found = beam_search(model, sources, o)[0][0];

    double best = -1e30;
    const std::function<void(const Prefix&, double, Terms::State)> enumerate = [&](const Prefix& prefix, double sum, Terms::State state) {
      const bool complete = o.terms->complete(state);
      if (complete) {
        EXPECT_TRUE((contains(prefix, one) || contains(prefix, third)) && contains(prefix, other));
      }
      if (prefix.size() == kLongest) {
        if (complete) best = std::max(best, plain_score(o, sum, kLongest));
        return;
      }
      const std::vector<double> p = log_softmax(logits(0, prefix));
      if (complete) best = std::max(best, plain_score(o, sum + p[kEnd], prefix.size() + 1));
      for (int32_t t = 0; t < kVocabulary; ++t) {
        if (t == kEnd) continue;
        Prefix longer = prefix;
        longer.push_back(t);
        enumerate(longer, sum + p[static_cast<size_t>(t)], o.terms->after(state, t));
      }
    };
    enumerate({}, 0, {});
    EXPECT_EQ(found.missing_terms, 0) << seed;
    EXPECT_TRUE(contains(found.tokens, one) || contains(found.tokens, third)) << seed;
    EXPECT_TRUE(contains(found.tokens, other)) << seed;
    if (without.missing_terms == 0 && found.tokens == without.tokens) continue;
    EXPECT_NEAR(found.score, best, 1e-5) << seed;
    ++changed;
  }
  EXPECT_GT(changed, 20);
}

}  // namespace
}  // namespace starling
