// Targets that mean nothing: no arm is recommended for reaching them, and the reason is said.
#include "experiments/target_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;

class TargetCheckTest : public testing::Test {
 protected:
  TargetCheckTest() {
    recipe_.baseline.name = "one-worker";
    recipe_.networks = {{.name = "net"}};
    recipe_.targets = {{"cross-entropy", 0, 0}};
    recipe_.arms = {{.name = "arm"}};
  }
  // Validations every `every` updates, at which cross-entropy and BLEU have these values.
  void add(const std::string& arm, int workers, int64_t every, const std::vector<std::pair<double, double>>& scores) {
    RaceResult r{arm, workers > 1 ? "net" : "", false, workers, 9.4, 1, 0.001, false, {}, {}};
    for (const auto& [loss, bleu] : scores) {
      const auto n = static_cast<int64_t>(r.curve.size()) + 1;
      r.curve.push_back(
          {n * every, n * every * 1000, 0, static_cast<double>(n * every) / workers, {{"cross-entropy", loss}, {"bleu", bleu}}});
    }
    results_.push_back(r);
  }
  std::string recommendation() const { return RaceResults(recipe_, results_).recommendations().at(0); }
  RaceRecipe recipe_;
  std::vector<RaceResult> results_;
};

TEST_F(TargetCheckTest, ARaceThatLearnedIsJudged) {
  add("one-worker", 1, 100, {{4, 1}, {3, 9}}), add("arm", 4, 100, {{4, 1}, {2.9, 9}});
  EXPECT_THAT(recommendation(), HasSubstr("use arm"));
}

TEST_F(TargetCheckTest, TwentyUpdatesSayNothing) {
  add("one-worker", 1, 10, {{9, 0}, {7, 0}}), add("arm", 4, 10, {{9, 0}, {6.9, 0}});
  EXPECT_THAT(recommendation(),
              HasSubstr("no arm to recommend: one worker made 20 updates, too few to tell strategies apart; raise race.tokens"));
}

TEST_F(TargetCheckTest, ABaselineThatLearnedNothingIsNoMeasure) {
  add("one-worker", 1, 100, {{7.01, 0}, {7.00, 0}}), add("arm", 4, 100, {{7.01, 0}, {6.99, 0}});
  EXPECT_THAT(recommendation(),
              HasSubstr("no arm to recommend: one worker learned nothing (cross-entropy 7.0100 at its first validation, 7.0000 at"));
}

TEST_F(TargetCheckTest, BleuOfZeroIsNoTarget) {
  recipe_.targets = {{"bleu", 0, 0}};
  add("one-worker", 1, 100, {{9, 0}, {7, 0}}), add("arm", 4, 100, {{9, 0}, {7, 0}});
  EXPECT_THAT(recommendation(), HasSubstr("no arm to recommend: the target is bleu 0, which an untrained model has"));
}

TEST_F(TargetCheckTest, AllAtTheFirstValidationIsNoRace) {
  recipe_.targets = {{"cross-entropy", 5, 0}};
  add("one-worker", 1, 100, {{4, 1}, {3, 9}}), add("arm", 4, 100, {{4, 1}, {2.9, 9}});
  EXPECT_THAT(recommendation(), HasSubstr("every run reaches the target (cross-entropy 5) by its first validation"));
  results_[0].curve[0].scores["cross-entropy"] = 6;
  EXPECT_THAT(recommendation(), Not(HasSubstr("by its first validation")));
}

}  // namespace
}  // namespace starling
