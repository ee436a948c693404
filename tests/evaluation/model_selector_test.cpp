// What a run thinks of its validations, without a run: sequences of scores with the outcome written down for each.
#include "evaluation/model_selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Scores = std::vector<std::pair<std::string, double>>;

Scores both(double bleu, double entropy) { return {{"cross-entropy", entropy}, {"bleu", bleu}}; }
ModelSelector selector_of_both(int64_t patience) { return ModelSelector({"cross-entropy", "bleu"}, "bleu", patience); }

// The numbers of the validations (from 1) that were the best so far, for a deciding metric bleu and cross-entropy beside it.
std::vector<int64_t> best_ones(ModelSelector& selector, const std::vector<std::pair<double, double>>& scores) {
  std::vector<int64_t> best;
  for (size_t i = 0; i < scores.size(); ++i)
    if (selector.consider(static_cast<int64_t>(i) + 1, both(scores[i].first, scores[i].second)).best)
      best.push_back(static_cast<int64_t>(i) + 1);
  return best;
}

TEST(ModelSelector, TheDecidingMetricDecidesWhileItChanges) {
  ModelSelector selector = selector_of_both(0);
  EXPECT_FALSE(selector.has_best());
  EXPECT_THAT(best_ones(selector, {{3, 4.0}, {5, 4.5}, {4, 3.0}, {5.5, 9.0}, {5.4, 1.0}}), ElementsAre(1, 2, 4));
  EXPECT_EQ(selector.best(), 5.5);
  EXPECT_EQ(selector.best_step(), 4);
  EXPECT_EQ(selector.stalled(), 1);
}

TEST(ModelSelector, LowerIsBetterForErrors) {
  EXPECT_TRUE(better_score("ter", 60, 61));
  EXPECT_TRUE(better_score("cross-entropy", 1, 2));
  EXPECT_TRUE(better_score("chrf", 2, 1));
  EXPECT_FALSE(better_score("bleu", 1, 1));
}

TEST(ModelSelector, NoComparisonIsWonByNan) {
  for (const char* metric : {"cross-entropy", "bleu"})
    for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      EXPECT_FALSE(better_score(metric, bad, 1)) << metric << bad;
      EXPECT_TRUE(better_score(metric, 1, bad)) << metric << bad;
      EXPECT_FALSE(better_score(metric, bad, bad)) << metric << bad;
    }
  ModelSelector selector({"cross-entropy"}, "cross-entropy", 0);
  EXPECT_FALSE(selector.consider(1, {{"cross-entropy", std::nan("")}}).best);
  EXPECT_FALSE(selector.has_best());
  EXPECT_TRUE(selector.consider(2, {{"cross-entropy", 7}}).best);
  EXPECT_FALSE(selector.consider(3, {{"cross-entropy", std::nan("")}}).best);
}

// BLEU of 0 throughout, as 13a gives for text without spaces, while the run learns: the finding.
TEST(ModelSelector, AConstantMetricLeavesTheBestToTheNextOne) {
  ModelSelector selector = selector_of_both(2);
  EXPECT_THAT(best_ones(selector, {{0, 9.0}, {0, 7.0}, {0, 7.5}, {0, 5.0}}), ElementsAre(1, 2, 4));
  EXPECT_EQ(selector.best_step(), 4);
}

TEST(ModelSelector, ATieInTheDecidingMetricIsNoTieInTheNext) {
  ModelSelector selector = selector_of_both(0);
  EXPECT_THAT(best_ones(selector, {{1, 9.0}, {30, 3.0}, {30, 3.1}, {30, 2.9}, {30, 2.9}}), ElementsAre(1, 2, 4));
}

TEST(ModelSelector, AConstantMetricAloneMakesTheLatestModelTheBest) {
  ModelSelector selector({"bleu"}, "bleu", 2);
  for (int64_t step = 1; step <= 9; ++step) {
    EXPECT_TRUE(selector.consider(step, {{"bleu", 0}}).best);
    EXPECT_FALSE(selector.stops());
  }
  EXPECT_TRUE(selector.consider(10, {{"bleu", 1.5}}).best);
  EXPECT_FALSE(selector.consider(11, {{"bleu", 1.5}}).best);  // it has changed once: the earlier of two equal models is kept
  EXPECT_EQ(selector.best_step(), 10);
}

// After which validation the run stops; 0: after none of them.
int64_t stops_after(ModelSelector selector, const std::vector<std::pair<double, double>>& scores) {
  for (size_t i = 0; i < scores.size(); ++i) {
    selector.consider(static_cast<int64_t>(i) + 1, both(scores[i].first, scores[i].second));
    if (selector.stops()) return static_cast<int64_t>(i) + 1;
  }
  return 0;
}

TEST(ModelSelector, StopsWhenNothingImproves) {
  const std::vector<std::pair<double, double>> worse{{9, 2.0}, {8, 2.1}, {7, 2.2}, {6, 2.3}, {5, 2.4}};
  EXPECT_EQ(stops_after(selector_of_both(1), worse), 2);
  EXPECT_EQ(stops_after(selector_of_both(3), worse), 4);
  EXPECT_EQ(stops_after(selector_of_both(0), worse), 0);
  EXPECT_EQ(stops_after(selector_of_both(2), {{9, 2.0}, {0, 4}, {0, 4}}), 3);  // fallen to a constant: that is worse than the best
}

TEST(ModelSelector, NeverStopsWhileAnotherMetricImproves) {
  EXPECT_EQ(stops_after(selector_of_both(2), {{9, 5}, {8, 4}, {7, 3}, {6, 2}, {5, 1}}), 0);
  EXPECT_EQ(stops_after(selector_of_both(2), {{9, 5}, {8, 4}, {7, 4.5}, {6, 4.4}, {5, 4.3}}),
            4);  // two validations after the last improvement
}

TEST(ModelSelector, NeverStopsOnAConstantMetric) {
  EXPECT_EQ(stops_after(selector_of_both(2), {{0, 9}, {0, 8}, {0, 8.1}, {0, 8.2}, {0, 8.3}, {0, 8.4}}), 0);
  EXPECT_EQ(stops_after(selector_of_both(2), {{4, 9}, {5, 8}, {5, 8.1}, {5, 8.2}, {5, 8.3}, {4, 8.4}}), 6);  // it moves again, downwards
}

TEST(ModelSelector, WarnsOnceWhenAMetricIsConstant) {
  ModelSelector selector = selector_of_both(0);
  EXPECT_THAT(selector.consider(1, both(0, 9)).messages, IsEmpty());
  EXPECT_THAT(selector.consider(2, both(0, 8)).messages, IsEmpty());
  EXPECT_THAT(selector.consider(3, both(0, 7)).messages,
              ElementsAre("warning: bleu was exactly 0 in 3 validations in a row, so it says nothing about progress; until it changes, "
                          "cross-entropy decides which model is the best, and nothing stops early"));
  EXPECT_THAT(selector.consider(4, both(0, 6)).messages, IsEmpty());
}

ModelSelector again(const ModelSelector& selector, ModelSelector fresh) {
  State state;
  selector.save(state);
  fresh.restore(State::from_json(state.to_json(), "state.json"));
  return fresh;
}

TEST(ModelSelector, TellsWhichMetricDecided) {
  ModelSelector selector = selector_of_both(0);
  EXPECT_EQ(selector.consider(1, both(0, 9)).by, "bleu");  // the first
  EXPECT_EQ(selector.summary(), "best bleu 0 at update 1");
  EXPECT_EQ(selector.consider(2, both(0, 8)).by, "cross-entropy");
  EXPECT_EQ(selector.summary(), "best bleu 0 at update 2, by cross-entropy 8 among equals");
  EXPECT_EQ(again(selector, ModelSelector({"bleu"}, "bleu", 0)).summary(), "best bleu 0 at update 2, by cross-entropy among equals");
  EXPECT_EQ(selector.consider(3, both(0, 8)).by, "");
  EXPECT_EQ(selector.summary(), "best bleu 0 at update 3, the latest of equals");
  EXPECT_FALSE(selector.consider(4, both(0, 8.5)).best);
  EXPECT_EQ(selector.summary(), "best bleu 0 at update 3, the latest of equals");
  EXPECT_EQ(again(selector, selector_of_both(0)).summary(), selector.summary());
  EXPECT_EQ(selector.consider(5, both(7, 9)).by, "bleu");
  EXPECT_EQ(selector.summary(), "best bleu 7 at update 5");
}

TEST(ModelSelector, SaysThatALaterModelTranslatesBetter) {
  const auto fresh = [] { return ModelSelector({"cross-entropy", "ter", "bleu"}, "cross-entropy", 0); };
  const auto scores = [](double entropy, double bleu) { return Scores{{"cross-entropy", entropy}, {"ter", 90}, {"bleu", bleu}}; };
  ModelSelector selector = fresh();
  selector.consider(100, scores(4, 10)), selector.consider(200, scores(2, 9.5));
  EXPECT_EQ(selector.advice(), "");  // an earlier one is chance
  selector.consider(300, scores(3, 10.4));
  EXPECT_EQ(selector.advice(), "");  // and so is less than a point
  selector.consider(400, scores(3.5, 15)), selector.consider(500, scores(3.6, 14));
  EXPECT_EQ(selector.advice(),
            "the best model by cross-entropy, of update 200, has bleu 9.5, and that of update 400 had 15; to keep the best by bleu, train "
            "with --valid.early-stopping-metric bleu");
  EXPECT_EQ(again(selector, fresh()).advice(), selector.advice());
  selector.consider(600, scores(1.9, 14.5));
  EXPECT_EQ(selector.advice(), "");
  ModelSelector by_bleu = selector_of_both(0);
  by_bleu.consider(1, both(10, 4)), by_bleu.consider(2, both(9, 3));
  EXPECT_EQ(by_bleu.advice(), "");
}

// A checkpoint of a version that did not know at which update a metric was at its best.
TEST(ModelSelector, AdvisesNothingFromAnOlderCheckpoint) {
  State old;
  old.put("has-best", true), old.put("best", 2.0), old.put("best-metric", "cross-entropy"), old.put("best-step", 200);
  old.put("stalled", 1), old.put("validations", 3);
  old.put("scores-bleu", std::vector<double>{9.5, 15, 15}), old.put("counts-bleu", std::vector<int64_t>{0, 1});
  ModelSelector selector({"cross-entropy", "bleu"}, "cross-entropy", 0);
  selector.restore(old);
  EXPECT_EQ(selector.advice(), "");
  selector.consider(400, both(16, 3));
  EXPECT_THAT(selector.advice(), HasSubstr("of update 200, has bleu 9.5, and that of update 400 had 16"));
}

TEST(ModelSelector, ManyMetricsTakeThePlural) {
  ModelSelector selector({"bleu", "chrf", "cross-entropy"}, "bleu", 0);
  for (int64_t i = 1; i < 3; ++i) selector.consider(i, {{"bleu", 0}, {"chrf", i}, {"cross-entropy", 9}});
  EXPECT_THAT(selector.consider(3, {{"bleu", 0}, {"chrf", 3}, {"cross-entropy", 8}}).messages,
              ElementsAre(HasSubstr("until it changes, chrf, cross-entropy decide which model is the best")));
}

TEST(ModelSelector, SaysWhyTheRunDoesNotStop) {
  ModelSelector selector = selector_of_both(2);
  selector.consider(1, both(9, 5)), selector.consider(2, both(8, 4));
  EXPECT_THAT(selector.consider(3, both(7, 3)).messages,
              ElementsAre("bleu has not improved in 2 validations, but cross-entropy has: training continues"));
  ModelSelector still = selector_of_both(1);
  still.consider(1, both(9, 5));
  EXPECT_THAT(still.consider(2, both(9, 5)).messages, IsEmpty());  // counts as the best: nothing else was seen yet
  still = selector_of_both(1);
  still.consider(1, both(8, 5)), still.consider(2, both(9, 5));
  EXPECT_THAT(still.consider(3, both(9, 6)).messages,
              ElementsAre("bleu has not changed in 2 validations, which does not end the run early: training continues"));
}

TEST(ModelSelector, AResumedRunJudgesAsTheWholeOne) {
  const std::vector<std::pair<double, double>> scores{{0, 9}, {0, 8}, {0, 8.1}, {2, 8.2}, {1, 8.3}, {1, 7}, {1, 7.5}, {0.5, 8}, {0.5, 8}};
  for (const int64_t patience : {0, 1, 2, 3}) {
    ModelSelector whole = selector_of_both(patience), parts = selector_of_both(patience);
    for (size_t i = 0; i < scores.size(); ++i) {
      const auto step = static_cast<int64_t>(i) + 1;
      const ModelSelector::Verdict a = whole.consider(step, both(scores[i].first, scores[i].second));
      parts = again(parts, selector_of_both(patience));
      const ModelSelector::Verdict b = parts.consider(step, both(scores[i].first, scores[i].second));
      EXPECT_EQ(a.best, b.best) << step;
      EXPECT_EQ(a.messages, b.messages) << step;
      EXPECT_EQ(whole.stops(), again(parts, selector_of_both(patience)).stops()) << step;
    }
    EXPECT_EQ(whole.best(), again(parts, selector_of_both(patience)).best());
    EXPECT_EQ(whole.best_step(), 4);
  }
}

TEST(ModelSelector, TakesUpTheStateOfAnOlderCheckpoint) {
  State old;
  old.put("has-best", true), old.put("best", 12.5), old.put("best-metric", "bleu"), old.put("best-step", 40), old.put("stalled", 3);
  ModelSelector selector = selector_of_both(3);
  selector.restore(old);
  EXPECT_TRUE(selector.stops());  // a run that had ended stays ended
  EXPECT_EQ(selector.best(), 12.5);
  EXPECT_EQ(selector.best_step(), 40);
  EXPECT_FALSE(selector.consider(50, both(12, 3)).best);
  EXPECT_TRUE(selector.consider(60, both(13, 3)).best);
}

TEST(ModelSelector, AnotherDecidingMetricBeginsAfresh) {
  ModelSelector selector = selector_of_both(2);
  selector.consider(1, both(50, 5));
  ModelSelector other = again(selector, ModelSelector({"cross-entropy", "bleu"}, "cross-entropy", 2));
  EXPECT_FALSE(other.has_best());
  EXPECT_TRUE(other.consider(2, both(1, 6)).best);
}

TEST(ModelSelector, ADamagedStateIsRefused) {
  State state;
  selector_of_both(1).save(state);
  state.put("scores-bleu", std::vector<double>{1});
  ModelSelector selector = selector_of_both(1);
  EXPECT_THROW(selector.restore(state), DataError);
}

}  // namespace
}  // namespace starling
