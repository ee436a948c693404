// Records of a race that somebody edited or a disk damaged: each wrong value is told with file, run and value, and nothing is computed
// from it. What is sound comes back as it was.
#include "experiments/record.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "experiments/race.h"
#include "tests/experiments/fixture.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;

Json sound() {
  RaceRecord r{"digest", true, false, {{2, {{"cross-entropy", 3.0}}}, {4, {{"cross-entropy", 2.5}, {"bleu", 1.0}}}}};
  r.times = {{2, {100, 10, 7}}, {4, {200, 20, 9}}};
  r.finals = {{"bleu", 1.5}};
  return to_json(r);
}

std::string refusal(const Json& json, bool timed = true) {
  try {
    record_from(json, "records.json: run", 4, timed);
    return "accepted";
  } catch (const DataError& e) {
    return e.what();
  }
}

TEST(RaceRecord, ComesBackAsItWas) {
  const RaceRecord r = record_from(sound(), "x", 4, true);
  EXPECT_EQ(to_json(r), sound());
  EXPECT_EQ(r.loss(), 2.5);
  Json untimed = sound();
  untimed.erase("times");
  EXPECT_EQ(refusal(untimed, false), "accepted");
}

TEST(RaceRecord, WrongValuesAreNamed) {
  struct Case {
    const char *pointer, *value, *mentions;
  };
  const std::vector<Case> cases{
      {"/validations/0/step", "-2", "step is -2"},
      {"/validations/0/step", "0", "update 0"},
      {"/validations/0/step", "1.5", "step is 1.5"},
      {"/validations/0/step", "18446744073709551615", "step is 18446744073709551615"},
      {"/validations/1/step", "2", "after update 2 of 4"},
      {"/validations/1/step", "5", "after update 5 of 4"},
      {"/validations/1/step", "1000000000000", "after update 1000000000000 of 4"},
      {"/validations/1/scores", "{\"bleu\": 3}", "no cross-entropy"},
      {"/validations/1/scores", "[]", "scores are []"},
      {"/validations/1/scores/bleu", "\"good\"", "the score of bleu is \"good\""},
      {"/validations", "3", "'validations' is 3"},
      {"/validations/0", "7", "no 'step' in 7"},
      {"/times/0/ns", "-100", "ns is -100"},
      {"/times/1/tokens", "-1", "tokens is -1"},
      {"/times/1/bytes", "-1", "bytes is -1"},
      {"/times/1/ns", "50", "after update 4 are less"},
      {"/times/0/ns", "1e300", "ns is 1e+300"},
      {"/times/1/step", "3", "no times of update 4"},
      {"/times", "{}", "is {}, not a list"},
      {"/done", "1", "'done' is 1"},
      {"/diverged", "null", "'diverged' is null"},
      {"/configuration", "5", "'configuration' is 5"},
      {"/finals", "null", "scores are null"},
  };
  for (const Case& c : cases) {
    Json json = sound();
    json[Json::json_pointer(c.pointer)] = Json::parse(c.value);
    EXPECT_THAT(refusal(json), StartsWith("records.json: run: ")) << c.pointer << " = " << c.value;
    EXPECT_THAT(refusal(json), HasSubstr(c.mentions)) << c.pointer << " = " << c.value;
    EXPECT_THAT(refusal(json), HasSubstr("remove it")) << c.pointer;
  }
  for (const char* key : {"configuration", "done", "diverged", "validations", "finals"}) {
    Json json = sound();
    json.erase(key);
    EXPECT_THAT(refusal(json), HasSubstr(fmt::format("no '{}'", key)));
  }
  EXPECT_THAT(refusal(Json(3)), HasSubstr("no 'configuration' in 3"));
}

constexpr const char* kSmall = R"(race:
  train: train.yml
  output: DIRECTORY
  workers: [2]
  tokens: 400
  validate-every: 400
  learning-rates: [0.003]
  networks:
    - {name: net, network: 10gbe}
  arms:
    - name: plain
      timed: true
)";

// Through a whole race: what was called a defect of Starling names the file and the run.
TEST_F(RaceTest, DamagedRecordsAreBadDataNotDefects) {
  std::string text = kSmall;
  text.replace(text.find("DIRECTORY"), 9, path("race"));
  write("recipe.yml", text + kTestCluster);
  const RaceProgress silent{[](const std::string&) {}, {}};
  ASSERT_EQ(run_race(load_recipe(path("recipe.yml")), silent), 0);
  const std::string good = read("race/records.json");
  const auto expect_refused = [&](const std::string& file, const std::string& mentions) {
    try {
      run_race(load_recipe(path("recipe.yml")), silent);
      ADD_FAILURE() << "accepted: " << mentions;
    } catch (const DataError& e) {
      EXPECT_THAT(e.what(), StartsWith(path(file)));
      EXPECT_THAT(e.what(), HasSubstr(mentions));
    }
  };
  for (const auto& [pointer, value] :
       {std::pair("/validations/0/step", -4), {"/validations/0/step", 123456}, {"/times/0/ns", -1}, {"/times/0/step", -1}}) {
    Json records = Json::parse(good);
    records["plain-2w-seed1-rate0.003-net"][Json::json_pointer(pointer)] = value;
    write("race/records.json", records.dump());
    expect_refused("race/records.json", "plain-2w-seed1-rate0.003-net");
    EXPECT_EQ(read("race/records.json"), records.dump()) << "a refused record stays as it is";
  }
  write("race/records.json", good);
  for (const auto& replay : std::filesystem::directory_iterator(path("race/replays"))) {
    const std::string name = "race/replays/" + replay.path().filename().string();
    for (const char* damaged : {"{}", "{\"updates\": [{\"step\": 1, \"ns\": -5, \"tokens\": 1, \"bytes\": 1}]}"}) {
      const std::string whole = read(name);
      write(name, damaged);
      expect_refused(name, "remove it");
      write(name, whole);
    }
  }
  EXPECT_EQ(run_race(load_recipe(path("recipe.yml")), silent), 0);
}

}  // namespace
}  // namespace starling
