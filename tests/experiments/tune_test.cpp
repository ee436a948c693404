// Tuning: the rungs spend the budget, the candidates cover their values evenly, and a whole tuning of a tiny model ends with a
// configuration that trains, also when it was stopped on the way.
#include "experiments/tune.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "base/error.h"
#include "run/fine_tuning.h"
#include "tests/experiments/fixture.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;

template <class Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no error";
}

TEST(TunePlan, TheRungsSpendTheBudget) {
  for (const int candidates : {1, 2, 3, 8, 12, 30, 100}) {
    const std::vector<TuneRung> rungs = tune_rungs(1e9, candidates, 2000);
    double tokens = 0;
    for (size_t i = 0; i < rungs.size(); ++i) {
      tokens += rung_tokens(rungs[i]);
      if (i == 0) continue;
      EXPECT_EQ(rungs[i].tokens, 3 * rungs[i - 1].tokens);
      EXPECT_EQ(rungs[i].candidates, (rungs[i - 1].candidates + 2) / 3);
    }
    EXPECT_NEAR(tokens, 1e9, 1e9 * 1e-4) << candidates;
    EXPECT_EQ(rungs.front().candidates, candidates);
    EXPECT_EQ(rungs.back().seeds.size(), 2u);
    EXPECT_LE(rungs.size(), 3u);
  }
  EXPECT_EQ(tune_rungs(1e9, 12, 2000).back().candidates, 2);
  // 82 shares of 50 updates of 2,000 tokens are the least that twelve candidates can have.
  EXPECT_EQ(tune_rungs(82 * 50 * 2000, 12, 2000).front().tokens, 50 * 2000);
  const std::string less = refusal([] { tune_rungs(82 * 25 * 2000, 12, 2000); });
  EXPECT_THAT(less, HasSubstr("each of the first 13 runs 25 updates"));
  EXPECT_THAT(less, HasSubstr("give about 2.0 times as much"));
}

TEST(TunePlan, CandidatesCoverTheValuesEvenly) {
  Config config;
  config.train.optimizer.learning_rate = 1e-3, config.train.batch_tokens = 2000, config.model.dropout = 0.25;
  const auto candidates = draw_candidates(config, {}, 84, 1);
  std::map<double, int> rates;
  std::map<std::string, std::map<std::string, int>> others;
  std::set<std::string> combinations;
  for (const TuneCandidate& c : candidates) {
    ++rates[c.rate];
    std::string all = fmt::format("{}", c.rate);
    for (const auto& [key, value] : c.keys) ++others[key][value], all += key + value;
    combinations.insert(all);
  }
  EXPECT_GE(rates.size(), 7u);
  int dealt = 0;
  for (const auto& [rate, count] : rates) {
    EXPECT_LE(count, 12) << rate;
    EXPECT_TRUE(rate >= 0.5e-3 && rate <= 5e-3);
    if (count > 5) dealt += count;
  }
  EXPECT_GE(dealt, 75) << "some get a rate of their own, since no run is made twice";
  const std::map<std::string, int> batches{{"1000", 21}, {"4000", 21}, {"8000", 21}}, optimizers{{"muon", 42}},
      dropouts{{"0.1", 14}, {"0.15", 14}, {"0.2", 14}, {"0.3", 14}, {"0.4", 14}}, alphas{{"0.3", 42}};
  EXPECT_EQ(others["train.batch-tokens"], batches);
  EXPECT_EQ(others["train.optimizer"], optimizers);
  EXPECT_EQ(others["model.dropout"], dropouts);
  EXPECT_EQ(others["data.subword-alpha"], alphas);
  EXPECT_EQ(combinations.size(), 84u) << "combined by chance, and none twice";
  EXPECT_EQ(combinations.count("0.001"), 0u) << "as the configuration has them";
  for (const TuneCandidate& c : draw_candidates(config, {"model.dropout"}, 6, 2)) {
    EXPECT_EQ(c.rate, 1e-3);
    EXPECT_LE(c.keys.size(), 1u);
  }
  const auto again = draw_candidates(config, {}, 84, 1), another = draw_candidates(config, {}, 84, 2);
  const auto rates_of = [](const std::vector<TuneCandidate>& all) {
    std::vector<double> list;
    for (const TuneCandidate& c : all) list.push_back(c.rate);
    return list;
  };
  EXPECT_EQ(rates_of(again), rates_of(candidates));
  EXPECT_NE(rates_of(another), rates_of(candidates));
  EXPECT_THAT(refusal([&] { draw_candidates(config, {"train.learning-rat"}, 6, 1); }), HasSubstr("did you mean 'train.learning-rate'?"));
}

TEST(TunePlan, ShortRunsLeaveDropoutAsItIs) {
  const auto tunes_dropout = [](int64_t run, int64_t last) {
    const std::vector<std::string> keys = keys_by_length(run, last);
    EXPECT_EQ(std::count(keys.begin(), keys.end(), "train.learning-rate"), 1);
    EXPECT_EQ(std::count(keys.begin(), keys.end(), "data.subword-alpha"), std::count(keys.begin(), keys.end(), "model.dropout"));
    return std::count(keys.begin(), keys.end(), "model.dropout") == 1;
  };
  EXPECT_TRUE(tunes_dropout(3000000, 1000000));
  EXPECT_FALSE(tunes_dropout(3000001, 1000000));
  EXPECT_TRUE(tunes_dropout(0, 1000000)) << "nobody knows how long it is";
}

// What a tuning has found is what its recommendation trains: a corpus of this size would choose a dropout of 0.3, batches of 2,000 tokens
// and transformer-small, and the values found are those that are built in.
TEST_F(RaceTest, TheRecommendationKeepsWhatWasFound) {
  write("corpus.gz", ""), std::filesystem::resize_file(path("corpus.gz"), 2'000'000);
  write("my.yml",
        "data: {source: " + path("corpus.gz") + ", target: " + path("corpus.gz") + "}\ntrain: {max-minutes: 12, max-epochs: 5}\n");
  const std::vector<Override> found{{"train.warmup", "400"},           {"train.batch-tokens", "4000"},
                                    {"model.dropout", "0.1"},          {"model.preset", "transformer-base"},
                                    {"train.learning-rate", "0.0005"}, {"train.schedule", "linear"},
                                    {"train.warmup-tokens", "90000"},  {"train.max-tokens", "900000"}};
  const std::string best = dump_config(tuned_config(path("my.yml"), found), false);
  write("best.yml", best);
  const Config c = load_run_config(path("best.yml"), {{"train.output", path("run")}});
  EXPECT_EQ(c.model.dropout, 0.1);
  EXPECT_EQ(c.model.preset, "transformer-base");
  EXPECT_EQ(c.train.batch_tokens, 4000);
  EXPECT_EQ(c.train.optimizer.learning_rate, 5e-4);
  EXPECT_EQ(c.train.warmup_tokens, 90000);
  EXPECT_THAT(best, Not(HasSubstr("warmup:")));
  EXPECT_THAT(best, Not(HasSubstr("max-minutes")));
  EXPECT_THAT(best, Not(HasSubstr("max-epochs")));
  EXPECT_EQ(c.train.max_tokens, 900000);
  EXPECT_EQ(step_limit(c.train), kNoStepLimit);
}

class TuneTest : public RaceTest {
 protected:
  TuneOptions options(const std::string& output) {
    TuneOptions o;
    o.config = path("train.yml"), o.output = path(output);
    o.candidates = 3, o.keys = {"train.learning-rate", "model.dropout"}, o.jobs = 1;
    // 16 shares of 50 updates of 200 tokens: 4 runs in the first rung, 2 of three times as many tokens with 2 seeds in the second.
    o.minutes = 1, o.tokens_per_second = 16 * 50 * 200 / (0.85 * 60) * 1.001;
    o.progress.say = [this](const std::string& line) { said_ += line + "\n"; };
    return o;
  }
  std::string said_;
};

TEST_F(TuneTest, FindsAConfigurationThatTrains) {
  EXPECT_EQ(run_tune(options("whole")), 0) << said_;
  EXPECT_THAT(said_, HasSubstr("rung 1: 3 candidates and the configuration's own values, 10010 target tokens each"));
  EXPECT_THAT(said_, HasSubstr("best: "));
  const std::string table = read("whole/table.md");
  EXPECT_THAT(table, HasSubstr("## Rung 1: "));
  EXPECT_THAT(table, HasSubstr("| as they are | "));
  const Config best = load_config(path("whole/best.yml"));
  EXPECT_EQ(best.train.optimizer.schedule, RateSchedule::linear);
  EXPECT_EQ(best.train.max_tokens, 30030);
  EXPECT_EQ(best.data.train.front().source, path("train.en"));
  // The best of the last rung's table is the first: its loss is the least.
  const size_t last = table.find("## Rung 2");
  ASSERT_NE(last, std::string::npos);
  std::vector<double> losses;
  std::istringstream lines(table.substr(last));
  for (std::string line; std::getline(lines, line);)
    if (const size_t bar = line.find(" | "); line.starts_with("| ") && bar != std::string::npos && std::isdigit(line[bar + 3]))
      losses.push_back(std::stod(line.substr(bar + 3)));
  EXPECT_EQ(losses.size(), 2u);
  EXPECT_TRUE(std::is_sorted(losses.begin(), losses.end()));

  // Again: everything is there, nothing is trained, the result is the same.
  said_.clear();
  EXPECT_EQ(run_tune(options("whole")), 0);
  EXPECT_EQ(read("whole/table.md"), table);
  TuneOptions other = options("whole");
  other.minutes = 2;
  EXPECT_THAT(refusal([&] { run_tune(other); }), HasSubstr("began with a different --budget"));
}

TEST_F(TuneTest, AStoppedTuningEndsAsTheWholeOne) {
  EXPECT_EQ(run_tune(options("whole")), 0);
  TuneOptions stopped = options("parts");
  int runs = 0;
  stopped.progress.updated = [&](const std::string&, int64_t step, int64_t) {
    if (step == 20 && ++runs == 3) std::raise(SIGTERM);
  };
  EXPECT_EQ(run_tune(stopped), 128 + SIGTERM);
  EXPECT_EQ(run_tune(options("parts")), 0);
  EXPECT_EQ(read("parts/table.md"), read("whole/table.md"));
}

TEST_F(TuneTest, ADryRunSaysWhatItWouldDo) {
  TuneOptions o = options("dry");
  o.dry_run = true;
  EXPECT_EQ(run_tune(o), 0);
  EXPECT_THAT(said_, HasSubstr("candidate-3: learning-rate "));
  EXPECT_THAT(said_, Not(HasSubstr("are not tuned")));
  said_.clear();
  o.keys.clear(), o.settings = {{"train.max-tokens", "1000000"}};
  EXPECT_EQ(run_tune(o), 0);
  EXPECT_THAT(said_, HasSubstr("model.dropout and data.subword-alpha are not tuned: a whole run has 1000000 target tokens, 33.3 times"));
  EXPECT_THAT(said_, Not(HasSubstr(", dropout ")));
  said_.clear();
  o.settings = {{"train.max-steps", "4000"}};  // of 200 tokens
  EXPECT_EQ(run_tune(o), 0);
  EXPECT_THAT(said_, HasSubstr("a whole run has 800000 target tokens, 26.6 times"));
  EXPECT_FALSE(std::filesystem::exists(path("dry/rung-1")));
}

}  // namespace
}  // namespace starling
