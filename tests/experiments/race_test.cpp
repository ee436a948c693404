// Whole races of a tiny model: figures agree with each other, an interrupted race ends with equal files, and bad recipes are named.
#include "experiments/race.h"

#include <gmock/gmock.h>

#include <csignal>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text_files.h"
#include "tests/experiments/fixture.h"

namespace starling {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

TEST_F(WholeRace, IsRunContinuedAndConsistent) {
  std::vector<std::string> said;
  const RaceProgress progress{[&](const std::string& line) { said.push_back(line); }, {}};
  ASSERT_EQ(run_race(load_recipe(recipe("whole")), progress), 0);
  const auto lines = csv("whole/results.csv");
  std::map<std::string, std::map<std::string, std::string>> by_key;
  for (const auto& line : lines) by_key[line.at("arm") + " " + line.at("network") + " " + line.at("seed")] = line;
  // One worker, the control and one finalist have both seeds on two networks.
  EXPECT_EQ(lines.size(), 2 + 4 + 4 + 2u) << read("whole/results.csv");
  for (const char* network : {"fast", "slow"}) {
    auto plain = by_key.at(std::string("plain ") + network + " 1"), twin = by_key.at(std::string("twin ") + network + " 1");
    plain["arm"] = plain["control"] = twin["arm"] = twin["control"] = "";
    EXPECT_EQ(plain, twin) << "replayed times are those of a run on that network";
  }
  const auto number = [](const std::string& text) { return std::stod(text); };
  const auto& fast = by_key.at("plain fast 1");
  const auto& slow = by_key.at("plain slow 1");
  const auto& one = by_key.at("one-worker  1");
  EXPECT_EQ(fast.at("final_loss"), slow.at("final_loss"));
  EXPECT_GT(number(slow.at("virtual_s")), number(fast.at("virtual_s")));
  EXPECT_NEAR(number(one.at("convergence_speedup")), 1, 1e-9);
  EXPECT_NEAR(number(slow.at("throughput_speedup")),
              number(slow.at("tokens")) / number(slow.at("virtual_s")) / (number(one.at("tokens")) / number(one.at("virtual_s"))), 1e-4);
  EXPECT_NEAR(number(one.at("target_value")), 1.02 * number(one.at("final_loss")), 1e-4);
  EXPECT_GT(number(slow.at("tokens")), 1.3 * number(one.at("tokens"))) << "race.longer";
  EXPECT_FALSE(fast.at("final_bleu").empty());
  EXPECT_THAT(said, testing::Contains(HasSubstr("run 1 of ")));
  EXPECT_THAT(said, testing::Contains(HasSubstr("simulated: 2 workers on slow: ")));
  EXPECT_FALSE(std::filesystem::exists(path("whole/runs/plain-2w-seed1-rate0.003/checkpoints")));

  // The same, interrupted within a run twice.
  int status = 0;
  for (const char* victim : {"plain-2w-seed1-rate0.001", "one-worker-1w-seed2"}) {
    const RaceProgress interrupting{[](const std::string&) {},
                                    [&](const std::string& run, int64_t step, int64_t) {
                                      if (run.starts_with(victim) && step == 5) std::raise(SIGINT);
                                    }};
    status = run_race(load_recipe(recipe("parts")), interrupting);
    EXPECT_EQ(status, 128 + SIGINT) << victim;
    EXPECT_THAT(read("parts/table.md"), HasSubstr(" runs are done.**")) << "what there is so far";
    EXPECT_THAT(read("parts/race.svg"), HasSubstr("unfinished"));
    EXPECT_THAT(read("parts/results.csv"), HasSubstr("yes,one-worker,"));
  }
  EXPECT_THAT(read("parts/table.md"), HasSubstr("| plain | 2 | 1 |")) << "one seed so far";
  std::filesystem::remove(path("parts/table.md"));
  const RaceProgress at_once{[](const std::string&) {},
                             [raised = false](const std::string&, int64_t, int64_t) mutable {
                               if (!std::exchange(raised, true)) std::raise(SIGINT);
                             }};
  EXPECT_EQ(run_race(load_recipe(recipe("parts")), at_once), 128 + SIGINT);
  EXPECT_THAT(read("parts/table.md"), HasSubstr("| plain | 2 | 1 |")) << "also if no run has ended since the start";
  said.clear();
  ASSERT_EQ(run_race(load_recipe(recipe("parts")), progress), 0);
  for (const char* file : {"results.csv", "curves.csv", "table.md", "race.svg"})
    EXPECT_EQ(read(std::string("whole/") + file), read(std::string("parts/") + file)) << file;

  // Several runs at a time, interrupted too: one of them in its last update.
  std::vector<std::string> turns;  // of the runs that made updates, one after the other
  const RaceProgress late{[](const std::string&) {},
                          [&](const std::string& run, int64_t step, int64_t) {
                            if (turns.empty() || turns.back() != run) turns.push_back(run);
                            if (run.starts_with("twin-2w-seed2") && step == 8) std::raise(SIGINT);
                          }};
  EXPECT_EQ(run_race(load_recipe(recipe("together")), late, 3), 128 + SIGINT);
  ASSERT_EQ(run_race(load_recipe(recipe("together")), progress, 3), 0);
  EXPECT_GT(turns.size(), std::set<std::string>(turns.begin(), turns.end()).size()) << "runs under way at the same time take turns";
  for (const char* file : {"records.json", "results.csv", "curves.csv", "table.md", "race.svg"})
    EXPECT_EQ(read(std::string("whole/") + file), read(std::string("together/") + file)) << file;

  // All is there: nothing is trained again, and other settings are refused.
  said.clear();
  const RaceProgress refusing{progress.say, [](const std::string& run, int64_t, int64_t) { FAIL() << run << " is trained again"; }};
  ASSERT_EQ(run_race(load_recipe(recipe("whole")), refusing), 0);
  try {
    run_race(load_recipe(recipe("whole"), {{"train.label-smoothing", "0.2"}}), progress);
    FAIL() << "the directory holds another race";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("was trained with another recipe"));
  }
}

TEST_F(WholeRace, WhereTimingMattersEachNetworkHasItsOwnRun) {
  std::string text = kRecipe;
  text.replace(text.find("seeds: [1, 2]"), 13, "seeds: [1]");
  text.replace(text.find("[0.003, 0.001]"), 14, "[0.003]");
  text = text.substr(0, text.find("    - name: plain")) + "    - name: downpour\n      strategy.name: downpour\n";
  int status = 0;
  const RaceProgress interrupting{[](const std::string&) {},
                                  [&](const std::string& run, int64_t step, int64_t) {
                                    if (run.ends_with("-slow") && step == 7) std::raise(SIGINT);
                                  }};
  status = run_race(load_recipe(recipe("race", text)), interrupting);
  EXPECT_EQ(status, 128 + SIGINT);
  ASSERT_EQ(run_race(load_recipe(recipe("race", text)), {[](const std::string&) {}, {}}), 0);
  const auto lines = csv("race/results.csv");
  ASSERT_EQ(lines.size(), 3u) << read("race/results.csv");
  const auto &fast = lines[1], &slow = lines[2];
  EXPECT_TRUE(std::filesystem::exists(path("race/runs/downpour-2w-seed1-rate0.003-fast/times.json")));
  EXPECT_GT(std::stod(slow.at("virtual_s")), 1.2 * std::stod(fast.at("virtual_s")));
  for (const auto& line : {fast, slow}) {
    EXPECT_NEAR(std::stod(line.at("tokens")), 3600, 500) << "race.longer x race.tokens, of both workers";
    // A push and a fetch of the f32 parameters for each update of 200 tokens; the last one may be cut short.
    EXPECT_NEAR(std::stod(line.at("sent_bytes_per_worker")) / std::stod(fast.at("sent_bytes_per_worker")), 1, 0.3);
  }
}

constexpr const char* kAsynchronous = R"(race:
  train: train.yml
  output: DIRECTORY
  workers: [1, 2]
  tokens: 1200
  validate-every: 400
  learning-rates: [0.003]
  networks:
    - {name: fast, network: 10gbe}
    - {name: slow, r: 2}
  targets:
    - {metric: cross-entropy, value: 100}
  arms:
    - name: downpour
      strategy.name: downpour
    - name: plain
      workers: [1]
)";

TEST_F(WholeRace, OneWorkerAndItsServerHaveANetwork) {
  ASSERT_EQ(run_race(load_recipe(recipe("race", kAsynchronous)), {[](const std::string&) {}, {}}), 0);
  std::map<std::string, double> seconds;
  std::set<std::string> bandwidths;
  for (const auto& line : csv("race/results.csv")) {
    const std::string key = line.at("arm") + line.at("workers") + line.at("network");
    EXPECT_TRUE(seconds.emplace(key, std::stod(line.at("virtual_s"))).second) << key;
    if (line.at("network") == "slow") bandwidths.insert(line.at("bandwidth_gbit_s"));
  }
  EXPECT_EQ(seconds.size(), 1 + 4 + 1u) << read("race/results.csv");
  for (const char* arm : {"downpour1", "downpour2"})
    EXPECT_GT(seconds.at(std::string(arm) + "slow"), 1.2 * seconds.at(std::string(arm) + "fast")) << arm;
  EXPECT_EQ(bandwidths.size(), 1u) << "one worker and its server have the network of two workers";
  EXPECT_EQ(seconds.at("plain1"), seconds.at("one-worker1"));
  EXPECT_GT(seconds.at("downpour1slow"), seconds.at("one-worker1")) << "pushes and fetches take time";
  EXPECT_THAT(read("race/table.md"), HasSubstr("| downpour | 1 | 1 | 0.003 |"));
}

TEST_F(WholeRace, AContinuedRunForgetsTheValidationsAfterItsCheckpoint) {
  std::string text = kAsynchronous;
  text.replace(text.find("[1, 2]"), 6, "[2]");
  text = text.substr(0, text.find("    - name: plain"));
  const RaceProgress interrupting{[](const std::string&) {},
                                  [&](const std::string& run, int64_t step, int64_t) {
                                    if (run.ends_with("-slow") && step == 2) std::raise(SIGINT);
                                  }};
  EXPECT_EQ(run_race(load_recipe(recipe("race", text)), interrupting), 128 + SIGINT);
  std::ofstream(path("race/runs/downpour-2w-seed1-rate0.003-slow/events.jsonl"), std::ios::app)
      << R"({"type": "validation", "step": 4321, "scores": {"cross-entropy": 1.5}})"
      << "\n";
  ASSERT_EQ(run_race(load_recipe(recipe("race", text)), {[](const std::string&) {}, {}}), 0);
  EXPECT_THAT(read("race/curves.csv"), testing::Not(HasSubstr(",4321,")));
  EXPECT_THAT(read("race/curves.csv"), HasSubstr("yes,downpour,2,slow,1,"));
}

TEST_F(WholeRace, RecordsAreEnoughToGoOnElsewhere) {
  const std::vector<Override> scores{{"race.final-metrics", "bleu"}};
  const RaceProgress silent{[](const std::string&) {}, {}};
  ASSERT_EQ(run_race(load_recipe(recipe("race", kAsynchronous), scores), silent), 0);
  std::filesystem::create_directories(path("moved"));
  for (const char* file : {"records.json", "data.json"}) std::filesystem::copy_file(path("race/") + file, path("moved/") + file);
  for (const char* file : {"train.en", "train.de"}) std::filesystem::rename(path(file), path(std::string("its-") + file));
  std::vector<Override> elsewhere = scores;
  elsewhere.insert(elsewhere.end(), {{"data.source", path("its-train.en")}, {"data.target", path("its-train.de")}});
  const RaceProgress refusing{[](const std::string&) {},
                              [](const std::string& run, int64_t, int64_t) { FAIL() << run << " is trained again"; }};
  ASSERT_EQ(run_race(load_recipe(recipe("moved", kAsynchronous), elsewhere), refusing), 0);
  for (const char* file : {"results.csv", "curves.csv", "table.md"})
    EXPECT_EQ(read(std::string("race/") + file), read(std::string("moved/") + file)) << file;
}

constexpr const char* kShort = R"(race:
  train: train.yml
  output: DIRECTORY
  workers: [2]
  tokens: 800
  validate-every: 400
  learning-rates: [0.003]
  networks:
    - {name: net, network: 10gbe}
  arms:
    - name: plain
)";

TEST_F(WholeRace, ALossThatIsNoNumberDivergedAndCanBeReadAgain) {
  const RaceProgress silent{[](const std::string&) {}, {}};
  ASSERT_EQ(run_race(load_recipe(recipe("race", kShort)), silent), 0);
  Json records = Json::parse(read("race/records.json"));
  records["plain-2w-seed1-rate0.003"]["validations"].back()["scores"]["cross-entropy"] = nullptr;
  write("race/records.json", records.dump());
  for (int time = 0; time < 2; ++time) {
    ASSERT_EQ(run_race(load_recipe(recipe("race", kShort)), silent), 0);
    EXPECT_THAT(read("race/table.md"), HasSubstr("| plain, 1 diverged | 2 | 1 | 0.003 | - | - | - | - | - | - |"));
    EXPECT_THAT(read("race/table.md"), HasSubstr("| plain | 2 | 0.0008 | 0.003 | diverged | chosen |"));
    for (const char* file : {"race/table.md", "race/results.csv", "race/curves.csv", "race/race.svg"}) {
      EXPECT_THAT(read(file), testing::Not(HasSubstr("nan"))) << file;
      EXPECT_THAT(read(file), testing::Not(HasSubstr("inf"))) << file;
    }
  }
  EXPECT_EQ(csv("race/results.csv").back().at("diverged"), "yes");
}

TEST_F(WholeRace, OneWorkerIsNotDisturbed) {
  const RaceProgress silent{[](const std::string&) {}, {}};
  const auto seconds = [&](const std::string& output, const std::string& disturbance) {
    std::string text = kShort;
    text.replace(text.find("[2]"), 3, "[2, 3]");
    recipe(output, text);
    std::string whole = read("recipe.yml");
    whole.insert(whole.rfind('}'), disturbance);
    write("recipe.yml", whole);
    EXPECT_EQ(run_race(load_recipe(path("recipe.yml")), silent), 0);
    std::map<std::string, double> all;
    for (const auto& line : csv(output + "/results.csv")) all[line.at("arm") + line.at("workers")] = std::stod(line.at("virtual_s"));
    return all;
  };
  auto still = seconds("still", "");
  auto disturbed = seconds("disturbed", ", stragglers: [{rank: 0, factor: 3}], link-faults: [{node: 1, factor: 0.5}]");
  EXPECT_EQ(disturbed.at("one-worker1"), still.at("one-worker1"));
  EXPECT_GT(disturbed.at("plain2"), 2 * still.at("plain2"));
  auto third = seconds("third", ", stragglers: [{rank: 2, factor: 3}]");
  EXPECT_EQ(third.at("plain2"), still.at("plain2")) << "there is no third rank";
  EXPECT_GT(third.at("plain3"), 2 * still.at("plain3"));
}

TEST_F(WholeRace, OtherDataIsRefused) {
  const RaceProgress silent{[](const std::string&) {}, {}};
  ASSERT_EQ(run_race(load_recipe(recipe("race", kShort)), silent), 0);
  for (const auto& [file, what] : std::map<std::string, std::string>{{"valid.de", "validation"}, {"train.de", "training"}}) {
    const std::string before = read(file);
    write(file, "zwei Hunde" + before.substr(before.find('\n')));
    try {
      run_race(load_recipe(recipe("race", kShort)), silent);
      ADD_FAILURE() << file << " has changed";
    } catch (const ConfigError& e) {
      EXPECT_THAT(e.what(), HasSubstr("this race began with different " + what + " data"));
    }
    write(file, before);
    EXPECT_EQ(run_race(load_recipe(recipe("race", kShort)), silent), 0) << "as it was, though written later";
  }
  std::filesystem::remove(path("race/data.json"));
  EXPECT_EQ(run_race(load_recipe(recipe("race", kShort)), silent), 0) << "races without it go on";
}

TEST_F(WholeRace, ScoresOfAllRunsHaveOneTokenizer) {
  std::vector<std::string> said;
  const RaceProgress telling{[&](const std::string& line) { said.push_back(line); }, {}};
  const std::vector<Override> scores{{"race.final-metrics", "bleu"}};
  ASSERT_EQ(run_race(load_recipe(recipe("race", kShort), scores), telling), 0);
  EXPECT_THAT(said, testing::Contains("tokenizer of BLEU and GLEU: 13a, since the references have spaces between words"));
  const std::string by_words = csv("race/results.csv").front().at("final_bleu");
  std::vector<Override> characters = scores;
  characters.emplace_back("valid.tokenize", "char");
  try {
    run_race(load_recipe(recipe("race", kShort), characters), telling);
    ADD_FAILURE() << "another tokenizer in a race";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("this race began with the tokenizer \"13a\" of BLEU and now has \"char\"; set valid.tokenize"));
  }
  ASSERT_EQ(run_race(load_recipe(recipe("by-characters", kShort), characters), telling), 0);
  EXPECT_NE(csv("by-characters/results.csv").front().at("final_bleu"), by_words);
}

TEST_F(WholeRace, WhatWouldEndARaceLaterIsRefusedBeforeIt) {
  const auto says = [&](const std::string& text, const std::vector<Override>& settings, const std::string& expected) {
    const RaceProgress refusing{[](const std::string&) {},
                                [](const std::string& run, int64_t, int64_t) { FAIL() << run << " is trained"; }};
    try {
      run_race(load_recipe(recipe("race", text), settings), refusing);
      ADD_FAILURE() << "accepted, though " << expected;
    } catch (const ConfigError& e) {
      EXPECT_THAT(e.what(), HasSubstr(expected));
    }
  };
  says(kShort, {{"strategy.name", "downpour"}}, "one worker, by which all arms are measured, has a server");
  says(kShort, {{"cluster.stragglers.0.rank", "2"}}, "there is no rank 2 in any run, the largest has 2");
  says(kShort, {{"cluster.link-faults.0.node", "2"}}, "there is no node 2 in any run");
  says(kShort, {{"race.networks.0.r", "0.0001"}}, "the latencies of a ring of 2 workers alone");
  const std::string timed = std::string(kShort) + "      timed: true\n";
  says(timed, {{"cluster.stragglers.0.until-s", "3"}}, "arm plain: stragglers and link-faults that come and go");
}

TEST_F(WholeRace, WhatWasTrainedIsNotTrainedAgainForItsFinalScores) {
  std::string text = kRecipe;
  text.replace(text.find("seeds: [1, 2]"), 13, "seeds: [1]");
  text = text.substr(0, text.find("    - name: twin"));
  const std::vector<Override> keep{{"race.keep-models", "true"}};
  ASSERT_EQ(run_race(load_recipe(recipe("race", text), keep), {[](const std::string&) {}, {}}), 0);
  const std::string results = read("race/results.csv");
  Json records = Json::parse(read("race/records.json"));
  Json& record = records["plain-2w-seed1-rate0.003"];
  ASSERT_EQ(record.at("done"), true);
  ASSERT_TRUE(record.at("finals").contains("bleu"));
  record["done"] = false, record["finals"] = Json::object();
  write("race/records.json", records.dump());
  std::filesystem::remove(path("race/runs/plain-2w-seed1-rate0.003/events.jsonl"));  // the record has what was validated
  const RaceProgress refusing{[](const std::string&) {}, [](const std::string& run, int64_t, int64_t) { FAIL() << run; }};
  ASSERT_EQ(run_race(load_recipe(recipe("race", text), keep), refusing), 0);
  EXPECT_EQ(read("race/results.csv"), results);
}

TEST(RaceRecipe, EveryKeyIsInTheManual) {
  RaceRecipe recipe;
  recipe.networks.resize(1), recipe.targets.resize(1), recipe.arms.resize(1);
  const std::string manual = read_text_file(std::string(STARLING_SOURCE_DIR) + "/docs/reference/race-recipe.md");
  const auto check = [&](const auto& self, const std::vector<ConfigField>& fields) -> void {
    for (const ConfigField& field : fields) {
      if (field.key == "SECTION.KEY") continue;
      EXPECT_THAT(manual, HasSubstr("`" + field.key + "`"));
      if (const auto* list = std::get_if<RecordList>(&field.value)) self(self, list->fields(0));
    }
  };
  check(check, config_section("race", "", recipe).fields);
}

TEST_F(WholeRace, BadRecipesAreNamedWithTheLine) {
  const auto says = [&](const std::string& text, const std::string& expected) {
    try {
      load_recipe(recipe("x", text));
      ADD_FAILURE() << "accepted, though " << expected;
    } catch (const ConfigError& e) {
      EXPECT_THAT(e.what(), HasSubstr(expected)) << text;
    }
  };
  const std::string head = "race:\n  train: train.yml\n";
  const std::string arm = "  arms:\n    - name: a\n";
  says(head + "  worker: [4]\n" + arm, "recipe.yml:3: there is no key 'worker' in race; did you mean 'workers'?");
  says(head + "  workers: [4, x]\n" + arm, "recipe.yml:3: race.workers: 'x' is not a whole number");
  says(head + arm + "      strategy.nam: x\n", "recipe.yml:5: arm a: there is no key 'strategy.nam'; did you mean 'strategy.name'?");
  says(head + arm + "      strategy.name: alreduce\n", "recipe.yml:5: arm a: strategy.name: there is no strategy 'alreduce'");
  says(head + arm + "      strategy.wire: {a: b}\n", "recipe.yml:5: strategy.wire: must be a single value");
  says(head + "  train.batch-tokens: 0\n" + arm, "recipe.yml:3: arm one-worker: train.batch-tokens: '0' is out of range");
  says(head + "  learning-rates: [1, 2]\n" + arm + "      learning-rates: [1]\n",
       "the arm a has 1 learning rate to choose from, one worker has 2");
  says(head + arm + "    - name: a\n", "race.arms.1: the name 'a' is given twice");
  says(head + "  arms: [{name: one-worker}]\n", "is that of the baseline");
  says(head + "  arms: [{name: a/b}]\n", "cannot be used in file names");
  says(head, "race.arms is empty");
  says(head + "  guard.mode: act\n" + arm, "a replay makes each update once, and cannot go back as guard.mode act does");
  says(head + "  parallel.pipeline: 2\n" + arm, "a race replays whole models; set parallel.pipeline and tensor to 1");
  says(head + "  valid.source: \"\"\n  valid.target: \"\"\n" + arm, "recipe.yml");
  says(head + "  seeds: [1, 1]\n" + arm, "race.seeds has a value twice");
  says(head + "  networks: [{name: n, r: 1, bandwidth-gbit-s: 3}]\n" + arm, "one follows from the other");
  says(head + "  tuning-workers: 3\n" + arm, "race.tuning-workers 3 is not among");
  says(head + "  tuning-workers: 4\n  tune-each: true\n" + arm, "tuning-workers 4 does nothing");
  says(head + "  second-key: train.warmup\n" + arm, "race.second-key is set, but race.second-values is not");
  says(head + arm + "      second-values: [3]\n", "has second-values, but race.second-key names no key");
  const std::string second = head + "  second-key: KEY\n  second-values: [1, 2]\n" + arm;
  const auto with_key = [&](const std::string& key) { return std::string(second).replace(second.find("KEY"), 3, key); };
  says(with_key("train.seed"), "the values '1' and '2' make the same configuration");
  says(with_key("vocab.size"), "have one vocabulary");
  says(with_key("train.warm"), "arm one-worker, with train.warm 1: there is no key 'train.warm'");
  says(with_key("train.warmup") + "      second-values: [1]\n", "has 1 candidate to choose from, one worker has 2");
  says(head + "  screening-rungs: 2\n" + arm, "screening-rungs does nothing without screening-tokens");
  says(head + "  screening-rungs: 3\n  screening-tokens: 200000\n" + arm, "become more than race.tokens");
  const auto cluster_says = [&](const std::string& cluster, const std::string& expected) {
    write("cluster.yml", head + "  networks: [{name: n, r: 1}]\n" + arm + "cluster:\n" + cluster);
    try {
      load_recipe(path("cluster.yml"));
      ADD_FAILURE() << "accepted, though " << expected;
    } catch (const ConfigError& e) {
      EXPECT_THAT(e.what(), HasSubstr(expected)) << cluster;
    }
  };
  cluster_says("  jitter: 0.1\n  latency-us: 3\n",
               "cluster.yml:8: cluster.latency-us: the networks of a race are those of race.networks; ");
  cluster_says("  network: 1gbe\n", "cluster.yml:7: cluster.network: ");
  cluster_says("  ranks: 4\n", "cluster.yml:7: cluster.ranks: the number of ranks follows from race.workers");
  cluster_says("  ranks-per-node: 2\n", "the network n has r, which is that of a ring of nodes with one rank each");
  EXPECT_THROW(load_recipe(recipe("x", head + arm), {{"cluster.bandwidth-gbit-s", "3"}}), ConfigError);
}

}  // namespace
}  // namespace starling
