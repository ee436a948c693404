// The rules of the search on models that are plain functions (fake_model.h): coverage by hand and against enumeration, pruning, and that
// with both off the search is the plain one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/decode/plain_search.h"

namespace starling {
namespace {

// log P of a target, and the sum over source tokens of the logarithm of their coverage, step by step from the functions themselves.
struct Judged {
  double log_probability = 0, coverage = 0;
};
Judged consider(const FakeModel& m, int32_t sentence, const Prefix& target) {
  Judged j;
  Prefix prefix;
  std::vector<double> covered;
  for (int32_t token : target) {
    j.log_probability += log_softmax(m.logits(sentence, prefix))[token];
    const std::vector<float> p = m.attention(sentence, prefix);
    covered.resize(p.size());
    for (size_t i = 0; i < p.size(); ++i) covered[i] += p[i];
    prefix.push_back(token);
  }
  for (double c : covered) j.coverage += std::log(c < kCoverageFloor ? kCoverageFloor : c > 1 ? 1 : c);
  return j;
}

// Predicts the tokens of one sentence with probability 1, paying attention as the rows say.
FakeModel certain_model(const Prefix& target, const std::vector<std::vector<float>>& rows) {
  FakeModel m(6);
  m.logits = [=](int32_t, const Prefix& prefix) {
    std::vector<double> z(6, -100.0);
    z[target[prefix.size()]] = 100;
    return z;
  };
  m.attention = [=](int32_t, const Prefix& prefix) { return rows[prefix.size()]; };
  return m;
}

TEST(Coverage, ByHand) {
  // Sums over three steps, end of sentence included: 1.4 (counts as 1), 0.5, 1.1 (counts as 1).
  FakeModel m = certain_model({3, 4, kEnd}, {{0.5f, 0.3f, 0.2f}, {0.5f, 0.1f, 0.4f}, {0.4f, 0.1f, 0.5f}});
  const Sources sources{{3, 4, kEnd}};
  const Hypothesis h = beam_search(m, sources, options(1, 0.7, 0.3))[0].at(0);
  EXPECT_EQ(h.tokens, (Prefix{3, 4}));
  EXPECT_NEAR(h.log_probability, 0, 1e-6);
  EXPECT_NEAR(h.score, 0.3 * -0.693147181, 1e-6);  // 0.3 ln 0.5
}

TEST(Coverage, ATokenWithoutAttentionCostsTheLogarithmOfTheFloor) {
  FakeModel m = certain_model({3, kEnd}, {{1.0f, 0.0f, 0.0f}, {0.5f, 0.5f, 0.0f}});
  const Sources sources{{3, 4, kEnd}};
  const double score = beam_search(m, sources, options(1, 0, 1))[0].at(0).score;
  EXPECT_NEAR(score, -0.693147181 - 9.210340372, 1e-6);  // ln 0.5 + ln 0.0001
}

TEST(Coverage, IsOnlyAskedForWhenItCounts) {
  FakeModel m = certain_model({3, kEnd}, {{1, 0}, {0, 1}});
  const Sources sources{{3, kEnd}};
  beam_search(m, sources, options(2, 0.6, 0));
  EXPECT_EQ(m.attention_calls, 0);
  beam_search(m, sources, options(2, 0.6, 0.1));
  EXPECT_GT(m.attention_calls, 0);
}

TEST(Coverage, ACoveredSourceBeatsAMoreProbableTranslation) {
  FakeModel m(6);
  m.logits = [](int32_t, const Prefix& prefix) {
    std::vector<double> z(6, -100.0);
    if (prefix.empty()) {
      z[3] = 0.2, z[4] = 0;
    } else {
      z[kEnd] = 0;
    }
    return z;
  };
  m.attention = [](int32_t, const Prefix& prefix) {
    if (!prefix.empty() && prefix[0] == 4) return std::vector<float>{0, 1};
    return std::vector<float>{0.9f, 0.1f};
  };
  const Sources sources{{3, kEnd}};
  EXPECT_EQ(beam_search(m, sources, options(2, 0, 0))[0].at(0).tokens, Prefix{3});
  // Token 3 leaves the second source token 0.2, so it costs beta * ln 5 = 1.6 beta more; its advantage is 0.2 nats (and beta ln(1/0.9)).
  EXPECT_EQ(beam_search(m, sources, options(2, 0, 0.12))[0].at(0).tokens, Prefix{3});
  EXPECT_EQ(beam_search(m, sources, options(2, 0, 0.15))[0].at(0).tokens, Prefix{4});
}

// Every target of at most `limit` tokens, ended or cut.
void all_targets(int32_t vocabulary, size_t limit, const Prefix& prefix, const std::function<void(const Prefix&)>& visit) {
  for (int32_t t = 0; t < vocabulary; ++t) {
    Prefix longer = prefix;
    longer.push_back(t);
    if (t == kEnd || longer.size() == limit) {
      visit(longer);
    } else {
      all_targets(vocabulary, limit, longer, visit);
    }
  }
}

TEST(Coverage, AWideBeamFindsTheBestOfAllTargets) {
  constexpr size_t limit = 4;
  constexpr int32_t V = 5;
  const Sources sources{{3, 4, kEnd}, {4, kEnd}, {3, 3, 4, 4, 3, kEnd}};
  for (const double alpha : {0.0, 0.6, -0.6}) {  // below 0: the form of a power
    for (const double beta : {0.2, 1.0}) {
      FakeModel m = random_model(17, V, sources, 1.5);
      SearchOptions o = options(600, std::abs(alpha), beta);
      if (alpha < 0) o.length_penalty_form = LengthPenaltyForm::power;
      const auto lp = [&](size_t n) { return alpha < 0 ? std::pow(static_cast<double>(n), -alpha) : length_penalty(alpha, n); };
      o.max_length_factor = 0, o.max_length_offset = limit, o.n_best = 5, o.min_length = 0;
      const auto found = beam_search(m, sources, o);
      for (int32_t s = 0; s < 3; ++s) {
        std::vector<std::pair<double, Prefix>> all;
        all_targets(V, limit, {}, [&](const Prefix& target) {
          const Judged j = consider(m, s, target);
          all.emplace_back(j.log_probability / lp(target.size()) + beta * j.coverage, target);
        });
        std::sort(all.rbegin(), all.rend());
        ASSERT_EQ(found[s].size(), 5u);
        for (size_t k = 0; k < 5; ++k) {
          Prefix target = found[s][k].tokens;
          if (static_cast<size_t>(found[s][k].length) > target.size()) target.push_back(kEnd);
          EXPECT_EQ(target, all[k].second) << "alpha " << alpha << " beta " << beta << " sentence " << s << " rank " << k;
          EXPECT_NEAR(found[s][k].score, all[k].first, 1e-5);
        }
      }
    }
  }
}

// Translations that must begin in one way: the best of those that do, by the probability of the rest.
TEST(Prefix, AWideBeamFindsTheBestOfAllThatBeginWithIt) {
  constexpr size_t limit = 4;
  constexpr int32_t V = 6;
  const Sources sources{{3, 4, kEnd}, {4, kEnd}};
  const Prefix prefix{5, 3};
  FakeModel m = random_model(23, V, sources, 1.5);
  SearchOptions o = options(600, 0.6, 0);
  o.max_length_factor = 0, o.max_length_offset = limit, o.n_best = 5, o.alignment = true, o.min_length = 0;
  o.target_prefix_ids = prefix;
  const auto found = beam_search(m, sources, o);
  for (int32_t s = 0; s < 2; ++s) {
    const double given = consider(m, s, prefix).log_probability;
    std::vector<std::pair<double, Prefix>> all;
    all_targets(V, limit + prefix.size(), prefix, [&](const Prefix& target) {
      all.emplace_back((consider(m, s, target).log_probability - given) / length_penalty(0.6, target.size() - prefix.size()), target);
    });
    std::sort(all.rbegin(), all.rend());
    ASSERT_EQ(found[s].size(), 5u);
    for (size_t k = 0; k < 5; ++k) {
      const Hypothesis& h = found[s][k];
      Prefix target = prefix;
      target.insert(target.end(), h.tokens.begin(), h.tokens.end());
      const bool ended = static_cast<size_t>(h.length) > h.tokens.size();
      if (ended) target.push_back(kEnd);
      EXPECT_EQ(target, all[k].second) << "sentence " << s << " rank " << k;
      EXPECT_NEAR(h.score, all[k].first, 1e-5);
      EXPECT_EQ(h.alignment.size(), h.tokens.size() + (ended ? 1 : 0));
    }
  }
}

// The coverage of each hypothesis followed its parents through every change of order.
TEST(Coverage, NarrowBeamsScoreTheirHypothesesRight) {
  const Sources sources{{3, 4, 5, kEnd}, {4, 3, kEnd}, {5, kEnd}};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FakeModel m = random_model(seed, 8, sources, 1.0);
    SearchOptions o = options(5, 0.4, 0.5);
    o.n_best = 5;
    const auto found = beam_search(m, sources, o);
    for (int32_t s = 0; s < 3; ++s)
      for (const Hypothesis& h : found[s]) {
        Prefix target = h.tokens;
        if (static_cast<size_t>(h.length) > target.size()) target.push_back(kEnd);
        const Judged j = consider(m, s, target);
        EXPECT_NEAR(h.log_probability, j.log_probability, 1e-4);
        EXPECT_NEAR(h.score, h.log_probability / length_penalty(0.4, target.size()) + 0.5 * j.coverage, 1e-4);
      }
  }
}

TEST(PlainSearch, IsWhatRemainsWithBothOff) {
  const Sources sources{{3, 4, kEnd}, {4, kEnd}, {5, 3, 4, 3, kEnd}};
  for (uint64_t seed = 0; seed < 120; ++seed) {
    // -2 and -1: there is none
    FakeModel m = random_model(seed, 7, sources, 1.0, seed % 2 == 0, static_cast<int32_t>(seed % 4) * 2 - 2, seed % 3 == 1 ? 5 : -1);
    SearchOptions o = options(static_cast<int64_t>(1 + seed % 6), seed % 3 == 0 ? 0 : 0.6, 0);
    o.allow_unknown = seed % 11 == 0;
    o.n_best = seed % 5 == 0 ? o.beam : 1;
    o.fixed_length = seed % 7 == 0;
    o.replace_ended = seed % 4 != 1;
    o.min_length = static_cast<int64_t>(seed % 3);
    o.patience = seed % 6 == 2 ? 2 : seed % 6 == 4 ? 0.5 : 1;
    if (seed % 5 == 3) o.word_penalty = seed % 2 == 0 ? 0.3 : -0.3, o.length_penalty_form = LengthPenaltyForm::power;
    const auto found = beam_search(m, sources, o);
    for (size_t s = 0; s < sources.size(); ++s) {
      const auto expected = plain_search(m, static_cast<int32_t>(s), static_cast<int64_t>(sources[s].size()), o);
      ASSERT_EQ(found[s].size(), expected.size());
      for (size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(found[s][k].tokens, expected[k].tokens) << "seed " << seed;
        EXPECT_EQ(found[s][k].log_probability, expected[k].log_probability);  // to the bit
        EXPECT_EQ(found[s][k].length, expected[k].length);
        EXPECT_DOUBLE_EQ(found[s][k].score, expected[k].score);
      }
    }
  }
}

// The probabilities of a translation are the model's, not those of a distribution without the unknown symbol.
TEST(UnknownSymbol, TheNextBestPieceTakesItsPlaceWithItsOwnProbability) {
  constexpr int32_t unknown = 0;
  FakeModel m(6, unknown);
  m.logits = [](int32_t, const Prefix& prefix) {
    std::vector<double> z(6, -100.0);
    if (prefix.size() == 1) {
      z[unknown] = std::log(0.9), z[4] = std::log(0.07), z[5] = std::log(0.03);
    } else {
      z[prefix.empty() ? 3 : kEnd] = 0;
    }
    return z;
  };
  const Sources sources{{3, kEnd}};
  SearchOptions o = options(1, 0, 0);
  const Hypothesis without = beam_search(m, sources, o)[0].at(0);
  EXPECT_EQ(without.tokens, (Prefix{3, 4}));
  EXPECT_NEAR(without.log_probability, std::log(0.07), 1e-6);
  o.beam = o.n_best = 6;  // as many as there are pieces: the unknown one is in none of the hypotheses
  const std::vector<Hypothesis> all = beam_search(m, sources, o)[0];
  for (const Hypothesis& h : all) EXPECT_EQ(std::count(h.tokens.begin(), h.tokens.end(), unknown), 0);
  o = options(1, 0, 0), o.allow_unknown = true;
  const Hypothesis with = beam_search(m, sources, o)[0].at(0);
  EXPECT_EQ(with.tokens, (Prefix{3, unknown}));
  EXPECT_NEAR(with.log_probability, std::log(0.9), 1e-6);
}

class Pruning : public testing::Test {
 protected:
  struct Outcome {
    std::vector<std::vector<Hypothesis>> found;
    SearchWork work;
  };
  Outcome search(FakeModel& m, SearchOptions o, double threshold) const {
    o.prune_threshold = threshold;
    Outcome outcome;
    outcome.found = beam_search(m, sources_, o, &outcome.work);
    return outcome;
  }
  const Sources sources_{{3, 4, kEnd}, {4, kEnd}, {5, 3, 4, 3, kEnd}};
};

TEST_F(Pruning, ALargeThresholdKeepsTheBest) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (const double beta : {0.0, 0.3}) {
      FakeModel m = random_model(seed, 9, sources_, 1.5);
      const SearchOptions o = options(6, 0.6, beta);
      const Outcome all = search(m, o, 0), pruned = search(m, o, 1e6);
      EXPECT_LE(pruned.work.rows, all.work.rows);
      for (size_t s = 0; s < sources_.size(); ++s) {
        EXPECT_EQ(pruned.found[s].at(0).tokens, all.found[s].at(0).tokens) << "seed " << seed << " beta " << beta;
        EXPECT_EQ(pruned.found[s].at(0).score, all.found[s].at(0).score);
      }
    }
  }
}

TEST_F(Pruning, AVerySmallThresholdIsTheGreedySearch) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FakeModel m = random_model(seed, 9, sources_, 1.5);
    const Outcome greedy = search(m, options(1, 0.6, 0.2), 0), pruned = search(m, options(8, 0.6, 0.2), 1e-9);
    EXPECT_EQ(pruned.work.rows, greedy.work.rows);
    for (size_t s = 0; s < sources_.size(); ++s) EXPECT_EQ(pruned.found[s].at(0).tokens, greedy.found[s].at(0).tokens) << "seed " << seed;
  }
}

TEST_F(Pruning, ASmallerThresholdComputesFewerRows) {
  int64_t rows[4] = {0, 0, 0, 0};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FakeModel m = random_model(seed, 9, sources_, 1.5);
    const double thresholds[] = {0, 6, 3, 1};
    for (int i = 0; i < 4; ++i) rows[i] += search(m, options(10, 0.2, 0.2), thresholds[i]).work.rows;
  }
  EXPECT_GT(rows[0], rows[1]);
  EXPECT_GT(rows[1], rows[2]);
  EXPECT_GT(rows[2], rows[3]);
}

// Two tokens, the second so much less probable; then the end.
TEST_F(Pruning, TheThresholdIsInNatsBelowTheBestContinuation) {
  for (const double gap : {2.9, 3.1}) {
    FakeModel m(6);
    m.logits = [gap](int32_t, const Prefix& prefix) {
      std::vector<double> z(6, -100.0);
      if (prefix.empty()) {
        z[3] = 0, z[4] = -gap;
      } else {
        z[kEnd] = 0;
      }
      return z;
    };
    m.attention = [this](int32_t s, const Prefix&) { return std::vector<float>(sources_[s].size(), 0.1f); };
    SearchOptions o = options(2, 0, 0);
    o.n_best = 2;
    EXPECT_EQ(search(m, o, 3).work.rows, gap < 3 ? 3 + 6 : 3 + 3) << gap;  // both tokens, or the better one, of three sentences
  }
}

TEST_F(Pruning, NBestListsEndAtTheThresholdBelowTheBest) {
  bool shortened = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FakeModel m = random_model(seed, 9, sources_, 1.5);
    SearchOptions o = options(8, 0.2, 0.2);
    o.n_best = 8;
    for (const auto& list : search(m, o, 1.5).found) {
      ASSERT_FALSE(list.empty());
      shortened |= list.size() < 8;
      EXPECT_GE(list.back().score, list.front().score - 1.5);
    }
  }
  EXPECT_TRUE(shortened);
}

}  // namespace
}  // namespace starling
