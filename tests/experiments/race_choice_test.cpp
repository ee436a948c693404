// Races that choose: rates and one more key by trials, at one number of workers or at each, and arms that take the runs of others.
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text_files.h"
#include "experiments/race.h"
#include "tests/experiments/fixture.h"

namespace starling {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

TEST_F(WholeRace, ADivergedCandidateIsNotChosen) {
  std::string text = kRecipe;
  text.replace(text.find("[0.003, 0.001]"), 14, "[1e5, 0.003]");
  text.replace(text.find("seeds: [1, 2]"), 13, "seeds: [1]");
  ASSERT_EQ(
      run_race(load_recipe(recipe("race", text), {{"train.warmup", "1"}, {"train.optimizer", "sgd"}}), {[](const std::string&) {}, {}}), 0);
  EXPECT_THAT(read("race/table.md"), HasSubstr("| plain | 2 | 0.0036 | 0.003 |"));
  for (const auto& line : csv("race/results.csv")) EXPECT_EQ(line.at("learning_rate"), "0.003");
}

TEST_F(WholeRace, ShortTrialsChooseTheRate) {
  std::string text = kRecipe;
  text.replace(text.find("seeds: [1, 2]"), 13, "seeds: [1]");
  text = text.substr(0, text.find("    - name: twin"));
  std::map<std::string, int64_t> updates;  // by run
  const RaceProgress counting{[](const std::string&) {}, [&](const std::string& run, int64_t, int64_t) { ++updates[run]; }};
  ASSERT_EQ(run_race(load_recipe(recipe("race", text), {{"race.screening-tokens", "1200"}}), counting), 0);
  const auto lines = csv("race/results.csv");
  ASSERT_EQ(lines.size(), 3u) << read("race/results.csv");
  std::set<std::string> runs;
  for (const auto& [run, count] : updates) runs.insert(run);
  std::set<std::string> expected;
  for (const auto& [arm, line] : {std::pair{"one-worker-1w", lines[0]}, std::pair{"plain-2w", lines[1]}}) {
    for (const char* rate : {"0.003", "0.001"}) expected.insert(fmt::format("{}-seed1-rate{}-trial", arm, rate));
    expected.insert(fmt::format("{}-seed1-rate{}", arm, line.at("learning_rate")));
  }
  EXPECT_EQ(runs, expected) << "both candidates are tried, and the better one is run";
  const int64_t trial = updates.at("one-worker-1w-seed1-rate0.003-trial");
  EXPECT_EQ(updates.at(fmt::format("one-worker-1w-seed1-rate{}", lines[0].at("learning_rate"))), 2 * trial);
  EXPECT_EQ(updates.at("plain-2w-seed1-rate0.003-trial"), trial / 2) << "trials of several workers are not longer";
}

// Rate and batch of one worker and of two and four: nine candidates on a third of the tokens, three on all of them, the best is the choice.
TEST_F(WholeRace, TunesTwoKeysAtEveryNumberOfWorkersRungByRung) {
  std::string text = kRecipe;
  text.replace(text.find("seeds: [1, 2]"), 13, "seeds: [1]"), text.replace(text.find("workers: [2]"), 12, "workers: [2, 4]");
  text.replace(text.find("rates: [0.003, 0.001]"), 21, "rates: [0.003, 0.001, 0.1]");
  text = text.substr(0, text.find("    - name: twin"));
  text += "      longer: 2\n";  // of plain
  const std::vector<Override> keys{{"race.screening-tokens", "800"},
                                   {"race.screening-rungs", "2"},
                                   {"race.tune-each", "true"},
                                   {"race.second-key", "train.batch-tokens"},
                                   {"race.second-values", "50,100,200"}};
  std::map<std::string, int64_t> updates;  // by run
  std::string last;
  const auto say = [&](const std::string& line) {
    if (line.starts_with("run ")) last = line;
  };
  const RaceProgress counting{say, [&](const std::string& run, int64_t, int64_t) { ++updates[run]; }};
  ASSERT_EQ(run_race(load_recipe(recipe("race", text), keys), counting), 0);
  const Json records = parse_json_object(read("race/records.json"), "records");
  const auto loss = [&](const std::string& run) {
    return records.at(run).at("validations").back().at("scores").at("cross-entropy").get<double>();
  };
  EXPECT_THAT(last, HasSubstr("run 39 of 39: ")) << "13 at each of three numbers of workers";
  for (const auto& line : csv("race/results.csv")) {
    const std::string place = fmt::format("{}-{}w-seed1-rate", line.at("arm"), line.at("workers"));
    std::vector<std::pair<double, std::string>> first, second;
    for (const char* rate : {"0.003", "0.001", "0.1"})
      for (const char* batch : {"50", "100", "200"}) {
        const std::string candidate = fmt::format("{}{}-{}", place, rate, batch);
        first.emplace_back(loss(candidate + "-trial"), candidate);
        if (updates.contains(candidate + "-trial2")) second.emplace_back(loss(candidate + "-trial2"), candidate);
      }
    std::sort(first.begin(), first.end()), std::sort(second.begin(), second.end());
    ASSERT_EQ(second.size(), 3u) << place;
    for (const auto& [worse, candidate] : second)
      EXPECT_TRUE(std::any_of(first.begin(), first.begin() + 3, [&](const auto& f) { return f.second == candidate; })) << candidate;
    EXPECT_EQ(place + line.at("learning_rate") + "-" + line.at("train.batch-tokens"), second.front().second);
    const int64_t whole = updates.at(second.front().second), trial = updates.at(second.front().second + "-trial2");
    EXPECT_EQ(line.at("workers") == "1" ? whole : whole / 2, trial) << "of 2,400 tokens, and of 4,800";
  }
  EXPECT_THAT(read("race/table.md"), HasSubstr("candidates were trained on, at a number of workers: 0.0144 M."));
  EXPECT_THAT(read("race/table.md"), HasSubstr("| plain | 4 | 0.0024 | "));
  // A race that goes on has nothing to do.
  updates.clear();
  ASSERT_EQ(run_race(load_recipe(recipe("race", text), keys), counting), 0);
  EXPECT_TRUE(updates.empty());
}

// The growing arm has its own number of updates, and is validated as often in tokens as the others.
TEST_F(WholeRace, AnArmMayHaveABatchThatGrows) {
  std::string text = kRecipe;
  text.replace(text.find("seeds: [1, 2]"), 13, "seeds: [1]"), text.replace(text.find("[0.003, 0.001]"), 14, "[0.003]");
  text.replace(text.find("validate-every: 600"), 19, "validate-every: 800");
  text = text.substr(0, text.find("    - name: twin")) + "    - name: growing\n      train.batch-doubles-at: [0.3, 0.6]\n";
  ASSERT_EQ(run_race(load_recipe(recipe("race", text), {{"train.batch-tokens", "40"}}), {[](const std::string&) {}, {}}), 0);
  std::map<std::string, std::vector<double>> tokens;
  std::map<std::string, int64_t> updates;
  for (const auto& line : csv("race/curves.csv"))
    if (line.at("workers") == "2" && line.at("network") == "slow" && line.at("metric") == "cross-entropy")
      tokens[line.at("arm")].push_back(std::stod(line.at("tokens"))), updates[line.at("arm")] = std::stoll(line.at("step"));
  EXPECT_EQ(updates.at("plain"), 45) << "3,600 tokens, 80 an update";
  EXPECT_EQ(updates.at("growing"), 14 + 7 + 5) << "of 1, 2 and 4 batches";
  ASSERT_EQ(tokens.at("plain").size(), tokens.at("growing").size());
  for (size_t i = 0; i < tokens.at("plain").size(); ++i) EXPECT_NEAR(tokens.at("plain")[i], tokens.at("growing")[i], 4 * 80) << i;
}

TEST_F(WholeRace, AnArmMayTakeTheRunsOfAnother) {
  std::string text = kRecipe;
  text.replace(text.find("finalists: 1"), 12, "finalists: 0");
  text = text.substr(0, text.find("    - name: twin"));
  std::set<std::string> trained;
  std::string last;  // line about a run
  const auto say = [&](const std::string& line) {
    if (line.starts_with("run ")) last = line;
  };
  const RaceProgress watching{say, [&](const std::string& run, int64_t, int64_t) { trained.insert(run); }};
  const auto result = [&](const std::string& output, const std::string& keys) {
    EXPECT_EQ(
        run_race(load_recipe(recipe(output, text + "    - name: blocking\n      control: true\n      strategy.overlap: false\n" + keys)),
                 watching),
        0);
    std::string lines;
    for (const auto& line : csv(output + "/results.csv"))
      if (line.at("arm") == "blocking")
        lines += line.at("network") + " " + line.at("seed") + " " + line.at("virtual_s") + " " + line.at("final_loss") + "\n";
    return lines;
  };
  const std::string bucket = "      strategy.bucket-mib: 0.01\n      strategy.embedding-gradients: dense\n",
                    taken = result("taken", bucket + "      trained-as: plain\n");
  for (const std::string& run : trained) EXPECT_FALSE(run.starts_with("blocking")) << run;
  EXPECT_THAT(last, HasSubstr("run 6 of 6: ")) << "two candidates and another seed of one worker and of plain";
  EXPECT_EQ(taken, result("itself", bucket));
  EXPECT_THAT(last, HasSubstr("run 8 of 8: ")) << "the same of blocking, and plain with one seed";
  EXPECT_THAT(taken, HasSubstr("slow "));
  EXPECT_TRUE(std::any_of(trained.begin(), trained.end(), [](const std::string& run) { return run.starts_with("blocking"); }));
  for (const auto& [keys, problem] :
       {std::pair{bucket + "      strategy.wire: bf16\n",
                  "differs from that of plain in more than strategy.overlap, bucket-mib and embedding-gradients"},
        std::pair{bucket + "      learning-rates: [0.1]\n", "nothing to train"}})
    try {
      load_recipe(recipe("bad", text + "    - name: blocking\n      trained-as: plain\n" + keys));
      FAIL() << problem;
    } catch (const ConfigError& e) {
      EXPECT_THAT(e.what(), HasSubstr(problem));
    }
}

}  // namespace
}  // namespace starling
