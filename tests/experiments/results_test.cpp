// Figures of a race from curves whose figures are known in closed form.
#include "experiments/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "experiments/picture.h"

namespace starling {
namespace {

using testing::HasSubstr;

// Validation loss 4 - 1000 tokens/million, every 100,000 tokens, at so many tokens a second.
std::vector<CurvePoint> line(double tokens_per_second, int points = 20, double offset = 0) {
  std::vector<CurvePoint> curve;
  for (int i = 1; i <= points; ++i) {
    const double tokens = 1e5 * i;
    curve.push_back({i * 10,
                     static_cast<int64_t>(tokens),
                     static_cast<int64_t>(8 * tokens),
                     tokens / tokens_per_second,
                     {{"cross-entropy", 4 - 1e-6 * tokens + offset}, {"bleu", 1e-5 * tokens}}});
  }
  return curve;
}

TEST(FirstReached, IsLinearBetweenValidations) {
  const auto at = first_reached(line(1000), "cross-entropy", 3.27);
  ASSERT_TRUE(at);
  EXPECT_NEAR(at->tokens, 730000, 1e-3);
  EXPECT_NEAR(at->seconds, 730, 1e-6);
  EXPECT_NEAR(at->bytes, 8 * 730000, 1e-2);
  EXPECT_NEAR(first_reached(line(1000), "bleu", 12.5)->seconds, 1250, 1e-6);
  EXPECT_NEAR(first_reached(line(1000), "cross-entropy", 3.9999)->seconds, 100, 1e-9) << "before the first validation nothing is known";
  EXPECT_NEAR(first_reached(line(1000), "cross-entropy", 4 - 0.3)->seconds, 300, 1e-6) << "a validation itself";
  EXPECT_FALSE(first_reached(line(1000), "cross-entropy", 1.9));
  EXPECT_FALSE(first_reached(line(1000), "chrf", 1.9));
  EXPECT_FALSE(first_reached({}, "cross-entropy", 9));
}

TEST(FirstReached, DoesNotDrawLinesFromScoresThatAreNoNumbers) {
  std::vector<CurvePoint> curve = line(1000, 4);  // 3.9 3.8 3.7 3.6
  curve[1].scores["cross-entropy"] = NAN;
  EXPECT_NEAR(first_reached(curve, "cross-entropy", 3.75)->tokens, 300000, 1e-6);
  curve[1].scores["bleu"] = INFINITY;
  EXPECT_NEAR(first_reached(curve, "bleu", 2.5)->tokens, 300000, 1e-6);
}

TEST(FirstReached, TakesTheFirstCrossing) {
  std::vector<CurvePoint> curve = line(1000, 4);  // 3.9 3.8 3.7 3.6
  curve[2].scores["cross-entropy"] = 3.95;
  EXPECT_NEAR(first_reached(curve, "cross-entropy", 3.85)->tokens, 150000, 1e-6);
}

TEST(Interval, IsStudents) {
  const Interval three = interval(std::vector<double>{1, 2, 4.5});
  // Mean 2.5, variance 3.25, t(2) = 4.303.
  EXPECT_NEAR(three.mean, 2.5, 1e-12);
  EXPECT_NEAR(three.half, 4.303 * std::sqrt(3.25 / 3), 1e-3);
  EXPECT_EQ(interval(std::vector<double>{7}).half, 0);
  EXPECT_TRUE(std::isnan(interval({}).mean));
}

class ResultsTest : public testing::Test {
 protected:
  ResultsTest() {
    recipe_.baseline.name = "one-worker";
    recipe_.networks = {{.name = "net"}};
    recipe_.targets = {{"cross-entropy", 3.0, 0}, {"bleu", 15, 0}};
    recipe_.arms = {{.name = "fast"}, {.name = "bad"}, {.name = "control", .control = true}};
    recipe_.seeds = {1, 2};
    add("one-worker", 1, 1, line(1000)), add("one-worker", 1, 2, line(1000));
    add("fast", 4, 1, line(3000)), add("fast", 4, 2, line(5000));
    add("bad", 4, 1, line(9000, 15, 0.3));  // fastest, but its loss is worse
    add("control", 4, 1, line(20000)), add("control", 4, 2, line(20000));
  }
  void add(const std::string& arm, int workers, int64_t seed, std::vector<CurvePoint> curve) {
    results_.push_back({arm, workers > 1 ? "net" : "", arm == "control", workers, 9.4, seed, 0.001, false, std::move(curve), {}});
  }
  RaceRecipe recipe_;
  std::vector<RaceResult> results_;
};

TEST_F(ResultsTest, SpeedUpsAreRatiosSeedBySeed) {
  const RaceResults results(recipe_, results_);
  const auto rows = results.rows("net", 4, recipe_.targets[0]);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].arm, "one-worker");
  EXPECT_NEAR(rows[0].convergence.mean, 1, 1e-12);
  EXPECT_EQ(rows[1].arm, "fast");
  EXPECT_NEAR(rows[1].convergence.mean, 4, 1e-9);  // 3 and 5
  EXPECT_NEAR(rows[1].convergence.half, 12.706, 1e-6);
  EXPECT_NEAR(rows[1].throughput.mean, 4, 1e-9);
  EXPECT_NEAR(rows[1].tokens.mean, 1e6, 1e-3);
  EXPECT_NEAR(rows[1].loss.mean, 2, 1e-12);
  EXPECT_NEAR(rows[2].convergence.mean, 1000.0 / (1.3e6 / 9000), 1e-9);
  EXPECT_NEAR(rows[2].baseline_loss, 2, 1e-12);
}

TEST_F(ResultsTest, RecommendsTheFastestThatIsAsGood) {
  const RaceResults results(recipe_, results_);
  const auto best = results.recommended("net", 4);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->arm, "fast") << "bad ends above 1.01 x 2, the control does not count";
  EXPECT_THAT(results.recommendations().at(0), HasSubstr("simulated: 4 workers on net: use fast"));
  EXPECT_EQ(results.ranking(), (std::vector<std::string>{"bad", "fast"})) << "by time alone";
  results_[2].curve = results_[3].curve = line(900);
  EXPECT_THAT(RaceResults(recipe_, results_).recommendations().at(0), HasSubstr("stay with one worker; the best of the others: fast"));
  recipe_.targets[0].value = 1;
  EXPECT_FALSE(RaceResults(recipe_, results_).recommended("net", 4)) << "nobody gets there";
}

// Times to loss 3 are 1e6 tokens over the speed.
TEST_F(ResultsTest, RankingIsByTheMeanRelativeTimeOverTheArmsOwnPlaces) {
  recipe_.networks = {{.name = "net"}, {.name = "other"}};
  recipe_.arms = {{.name = "few"}, {.name = "many"}, {.name = "misses"}, {.name = "never"}, {.name = "also-never"}};
  results_.resize(2);  // one worker
  const auto at = [&](const std::string& arm, const std::string& network, int workers, std::vector<CurvePoint> curve) {
    results_.push_back({arm, network, false, workers, 9.4, 1, 0.001, false, std::move(curve), {}});
  };
  // In one place, half as fast as the fastest; in three places, once the fastest and twice half as fast.
  at("few", "net", 8, line(2000));
  at("many", "net", 8, line(4000)), at("many", "other", 4, line(100)), at("many", "net", 4, line(100));
  at("misses", "other", 4, line(200)), at("misses", "net", 4, line(200)), at("misses", "net", 8, line(9000, 5));
  at("never", "net", 4, line(9000, 5)), at("also-never", "net", 4, line(9000, 5, -0.1));
  EXPECT_EQ(RaceResults(recipe_, results_).ranking(), (std::vector<std::string>{"many", "few", "misses", "also-never", "never"}));
}

TEST_F(ResultsTest, ATargetThatOneWorkerMissesHasNoSpeedUp) {
  results_[0].curve = results_[1].curve = line(1000, 9);  // ends at 3.1
  results_.erase(results_.begin() + 4);                   // "bad"
  const RaceResults results(recipe_, results_);
  const std::string line = results.recommendations().at(0);
  EXPECT_THAT(line,
              HasSubstr("use fast with learning rate 0.001: cross-entropy 3 in 266.7 virtual seconds, one worker does not reach it ("));
  EXPECT_THAT(results.markdown(), HasSubstr("Target: cross-entropy 3. One worker does not reach it."));
  EXPECT_THAT(results.markdown(), HasSubstr("| one-worker | 1 | 2 | 0.001 | - | - | - | - | 1.00 ± 0.00 | 3.1000 ± 0.0000 |"));
  EXPECT_EQ(results.markdown().find("nan"), std::string::npos) << results.markdown();
}

TEST_F(ResultsTest, TheRecommendationSaysHowManySeedsItRestsOn) {
  EXPECT_THAT(RaceResults(recipe_, results_).recommendations().at(0), HasSubstr(" sent per worker (2 seeds)"));
  const std::vector<Candidate> candidates{{"fast", 4, 1000, 0.001, "", 2, true}, {"fast", 4, 1000, 0.002, "", 3, false}};
  EXPECT_THAT(RaceResults(recipe_, results_, candidates).recommendations().at(0),
              HasSubstr("(2 seeds, one of which also chose the learning rate)"));
  results_.erase(results_.begin() + 3);
  EXPECT_THAT(RaceResults(recipe_, results_, candidates).recommendations().at(0),
              HasSubstr("(1 seed, which also chose the learning rate)"));
  recipe_.arms[0].name = "other", recipe_.arms.push_back({.name = "fast", .trained_as = "other"});
  const std::vector<Candidate> of_other{{"other", 4, 1000, 0.001, "", 2, true}, {"other", 4, 1000, 0.002, "", 3, false}};
  EXPECT_THAT(RaceResults(recipe_, results_, of_other).recommendations().at(0), HasSubstr("(1 seed, which also chose the learning rate)"));
}

// What the lines say must be what the tables show.
TEST_F(ResultsTest, SaysWhyNoArmIsRecommended) {
  const auto verdict = [&] { return RaceResults(recipe_, results_).recommendations().at(0); };
  results_.resize(2);  // one worker
  EXPECT_THAT(verdict(), HasSubstr("none has been trained here"));
  results_.resize(2), add("fast", 4, 1, line(3000, 5)), add("fast", 4, 2, line(3000, 5));
  EXPECT_THAT(verdict(), HasSubstr("no arm to recommend: none reaches the target (cross-entropy 3)"));
  results_.resize(2), add("fast", 4, 1, line(3000, 20, 0.5)), add("fast", 4, 2, line(3000, 20, 0.5));
  EXPECT_THAT(verdict(),
              HasSubstr("no arm to recommend: what reaches the target (cross-entropy 3) ends with a loss more than 1 % above one "
                        "worker's (fast with 2.5000, one worker 2.0000)"));
  add("bad", 4, 1, line(3000)), add("bad", 4, 2, line(3000, 5));
  EXPECT_THAT(verdict(), HasSubstr("(fast with 2.5000, one worker 2.0000), or does not reach it with every seed (bad with 1 of 2 seeds)"));
}

// As in the rungs of a tuning, whose runs have one validation.
TEST_F(ResultsTest, OfControlsTheLeastLossIsTold) {
  recipe_.arms = {{.name = "c1", .control = true}, {.name = "c2", .control = true}};
  recipe_.seeds = {1}, recipe_.targets = {{"cross-entropy", 0, 0}};
  results_.clear();
  const auto verdict = [&] { return RaceResults(recipe_, results_).recommendations().at(0); };
  add("one-worker", 1, 1, line(1000, 1)), add("c1", 1, 1, line(1000, 1, 0.1)), add("c2", 1, 1, line(1000, 1, -0.2));
  EXPECT_THAT(verdict(), HasSubstr("1 worker on net: all arms are controls; the least final loss has c2 with learning rate 0.001: 3.7000 "
                                   "(one-worker 3.9000)"));
  results_[2].curve = line(1000, 1, 0.3);
  EXPECT_THAT(verdict(), HasSubstr("the least final loss has one-worker with learning rate 0.001: 3.9000"));
}

TEST_F(ResultsTest, OneWorkerMayDiverge) {
  results_[0].diverged = results_[1].diverged = true;
  results_[1].curve.back().scores["cross-entropy"] = NAN;
  recipe_.targets = {{"cross-entropy", 3, 0}, {"bleu", 0, 0.1}};
  const RaceResults results(recipe_, results_);
  EXPECT_THAT(results.recommendations().at(0), HasSubstr("no arm to recommend: one worker, by which they are measured, diverged"));
  EXPECT_THAT(results.markdown(), HasSubstr("| one-worker, 2 diverged | 1 | 2 | 0.001 | - | - |"));
  EXPECT_NEAR(results.rows("net", 4, recipe_.targets[0])[1].tokens.mean, 1e6, 1e-3) << "a fixed target is reached all the same";
  for (const std::string& text : {results.markdown(), results.csv(), results.curves_csv(), race_picture(results)}) {
    EXPECT_EQ(text.find("nan"), std::string::npos) << text;
    EXPECT_EQ(text.find("inf"), std::string::npos) << text;
  }
}

TEST_F(ResultsTest, ARaceMayHaveNothingYet) {
  const RaceResults results(recipe_, {}, {}, "0 of 9 runs are done");
  EXPECT_THAT(results.markdown(), HasSubstr("**Unfinished: 0 of 9 runs are done.**"));
  EXPECT_THAT(race_picture(results), HasSubstr("</svg>"));
  EXPECT_TRUE(results.ranking().empty());
}

TEST_F(ResultsTest, AnArmMayHaveOneWorkerToo) {
  recipe_.arms[0].workers = {1, 4};
  add("fast", 1, 1, line(1500));
  const auto rows = RaceResults(recipe_, results_).rows("net", 4, recipe_.targets[0]);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[1].workers, 1);
  EXPECT_NEAR(rows[1].convergence.mean, 1.5, 1e-9);
  EXPECT_EQ(rows[2].workers, 4);
  EXPECT_NEAR(rows[2].convergence.mean, 4, 1e-9);
}

TEST_F(ResultsTest, TheTargetMayBeOneWorkersEnd) {
  recipe_.targets = {{"cross-entropy", 0, 0.05}, {"bleu", 0, 0.1}};
  const RaceResults results(recipe_, results_);
  EXPECT_NEAR(results.target_value(recipe_.targets[0], 1), 2.1, 1e-12);
  EXPECT_NEAR(results.target_value(recipe_.targets[1], 1), 18, 1e-12);
  EXPECT_TRUE(std::isnan(results.target_value(recipe_.targets[0], 3))) << "no such run";
}

TEST_F(ResultsTest, DivergedRunsCountAndDoNotArrive) {
  results_[3].diverged = true, results_[3].curve.clear();
  const RaceResults results(recipe_, results_);
  const auto rows = results.rows("net", 4, recipe_.targets[0]);
  EXPECT_EQ(rows[1].seeds, 2u);
  EXPECT_EQ(rows[1].diverged, 1u);
  EXPECT_EQ(rows[1].seconds.count, 1u);
  EXPECT_THAT(results.markdown(), HasSubstr("fast, 1 diverged"));
  EXPECT_THAT(results.markdown(), HasSubstr("(1 of 2)"));
  EXPECT_FALSE(results.recommended("net", 4)) << "not on all seeds";
}

TEST_F(ResultsTest, WritesTablesAndAPicture) {
  const RaceResults results(recipe_, results_, {{"fast", 4, 500000, 0.001, "", 2, true}, {"fast", 4, 500000, 0.002, "", INFINITY, false}});
  EXPECT_THAT(results.csv(),
              HasSubstr("yes,fast,no,4,net,9.4,1,0.001,no,200,2000000,666.667,16000000,cross-entropy,3,1e+06,333.333,8e+06,3,3,2\n"));
  EXPECT_THAT(results.csv(), HasSubstr(",bleu,15,1.5e+06,"));
  EXPECT_THAT(results.markdown(), HasSubstr("| fast | 4 | 2 | 0.001 |"));
  EXPECT_THAT(results.markdown(), HasSubstr("| fast | 4 | 0.5 | 0.002 | diverged |  |"));
  EXPECT_THAT(results.curves_csv(), HasSubstr("yes,fast,4,net,1,10,100000,33.333333333,800000,cross-entropy,3.9\n"));
  const std::string picture = race_picture(results);
  for (const char* text : {"<svg xmlns", "Simulated", "4 workers on net", ">fast<", ">control<", "</svg>"})
    EXPECT_THAT(picture, HasSubstr(text));
  EXPECT_EQ(picture.find("nan"), std::string::npos);
  EXPECT_EQ(picture.find("inf"), std::string::npos);
}

// Of equal curves the lower ones are so much wider that they show.
TEST_F(ResultsTest, ThePictureHidesNoCurveAndLeavesNoPanelEmpty) {
  recipe_.seeds = {1}, results_.clear();
  recipe_.targets = {{"cross-entropy", 1, 0}};  // nobody gets there
  add("one-worker", 1, 1, line(1000)), add("fast", 4, 1, line(1000)), add("bad", 4, 1, line(1000)), add("control", 4, 1, line(500));
  const std::string picture = race_picture(RaceResults(recipe_, results_));
  std::vector<std::string> widths;
  for (size_t at = picture.find("<polyline"); at != std::string::npos; at = picture.find("<polyline", at + 1)) {
    const size_t begin = picture.find("stroke-width=\"", at) + 14;
    widths.push_back(picture.substr(begin, picture.find('"', begin) - begin));
  }
  EXPECT_THAT(widths, testing::ElementsAre("6.6", "4.2", "1.8", "1.8"));
  for (const char* title : {">virtual seconds<", ">cross-entropy<"}) EXPECT_THAT(picture, HasSubstr(title));
  EXPECT_THAT(picture, testing::Not(HasSubstr("speed-up")));
  recipe_.targets = {{"cross-entropy", 3, 0}};
  const std::string reached = race_picture(RaceResults(recipe_, results_));
  for (const char* title : {">workers<", ">times one worker<", ">Convergence speed-up on net<"}) EXPECT_THAT(reached, HasSubstr(title));
  results_.clear();
  EXPECT_THAT(race_picture(RaceResults(recipe_, results_)), testing::Not(HasSubstr("Convergence")));
}

// Of every element that the picture places itself: the attribute's values.
std::vector<double> attributes(const std::string& svg, const std::string& name) {
  std::vector<double> all;
  for (size_t at = svg.find(" " + name + "=\""); at != std::string::npos; at = svg.find(" " + name + "=\"", at + 1))
    all.push_back(std::strtod(svg.c_str() + at + name.size() + 3, nullptr));
  return all;
}

TEST_F(ResultsTest, ThePictureHasRoomForManyLongNames) {
  recipe_.arms.clear(), results_.resize(1);
  recipe_.networks = {{.name = std::string(60, 'n')}};
  for (int i = 0; i < 12; ++i) {
    recipe_.arms.push_back({.name = std::string(58, 'a') + std::to_string(10 + i)});
    const bool arrives = i % 3 != 0;
    results_.push_back(
        {recipe_.arms.back().name, recipe_.networks[0].name, false, 4, 9.4, 1, 0.001, false, line(2000 + 100 * i, arrives ? 20 : 1), {}});
  }
  const std::string picture = race_picture(RaceResults(recipe_, results_));
  const double width = std::strtod(picture.c_str() + picture.find("width=\"") + 7, nullptr);
  std::map<std::string, int> strokes;
  size_t shown = 0;
  for (size_t at = picture.find("<text x=\""); at != std::string::npos; at = picture.find("<text x=\"", at + 1)) {
    const size_t begin = picture.find('>', at) + 1;
    const std::string text = picture.substr(begin, picture.find('<', begin) - begin);
    const double x = std::strtod(picture.c_str() + at + 9, nullptr);
    const bool from_there = picture.substr(at, begin - at).find("\"start\"") != std::string::npos;
    if (from_there) {
      // DejaVu Sans, the widest common font, has 0.61 of its size for an "a".
      const double size = std::strtod(picture.c_str() + picture.find("font-size=\"", at) + 11, nullptr);
      EXPECT_LT(x + 0.61 * size * static_cast<double>(text.size()), width) << text;
    }
    shown += text.starts_with("aaa");
  }
  EXPECT_EQ(shown, 12u) << "whole names in the legend";
  for (size_t at = picture.find("<polyline"); at != std::string::npos; at = picture.find("<polyline", at + 1)) {
    const std::string element = picture.substr(at, picture.find(" points", at) - at);
    ++strokes[element.substr(element.find("stroke="))];
  }
  for (const auto& [stroke, count] : strokes) EXPECT_EQ(count, 1) << "two arms look alike: " << stroke;
  EXPECT_EQ(attributes(picture, "cx").size(), 4u) << "a single validation is a point";
  for (const char* name : {"x", "y", "x1", "y1", "x2", "y2", "cx", "cy"})
    for (const double value : attributes(picture, name)) EXPECT_TRUE(value >= 0 && value < 3000) << name;
  EXPECT_EQ(picture.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace starling
