// What is read of a run while it writes: records, configuration, log, kept translations.
#include "watch/run_record.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>

#include "base/iso_time.h"
#include "tests/watch/run_directories.h"

namespace starling {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;

const double kNow = *seconds_of("2026-11-27T10:01:00Z");

class RunRecordTest : public test::RunDirectories {
 protected:
  bool refresh() {
    Look look;
    return record_.refresh(look);
  }
  Json json() {
    refresh();
    return record_.json(kNow);
  }
  RunRecord record_{testing::TempDir() + "/watch." + std::to_string(getpid()) + "/run"};
};

TEST(RunFiles, ReadTimes) {
  EXPECT_EQ(seconds_of("1970-01-02T00:00:01Z"), 86401);
  EXPECT_EQ(seconds_of("2026-11-27T10:00:00Z"), 1795773600);
  for (const char* wrong : {"", "2026-11-27", "2026-11-27T10:00:00", "2026-11-27T10:00:00Z "}) EXPECT_FALSE(seconds_of(wrong)) << wrong;
}

TEST_F(RunRecordTest, FollowsARunFromBeforeItsFirstRecord) {
  EXPECT_FALSE(refresh());
  EXPECT_EQ(record_.state(kNow), "empty");
  record("run", {{"type", "start"}, {"step", 0}, {"parameters", 123}, {"backend", "cpu"}, {"pairs", 9}});
  report("run", 10, 5);
  EXPECT_TRUE(refresh());
  EXPECT_FALSE(refresh());
  EXPECT_EQ(record_.state(kNow), "running");
  append("run/events.jsonl", R"({"schema":1,"type":"report","time":"2026-11-27T10:00:30Z","step":20,)");  // half a record, so far
  EXPECT_EQ(json()["last"]["step"], 10);
  append("run/events.jsonl", "\"loss\":4}\n");
  Json run = json();
  EXPECT_EQ(run["last"]["step"], 20);
  EXPECT_EQ(run["series"]["loss"], (Json{{"step", {10, 20}}, {"value", {5, 4}}}));
  EXPECT_FALSE(run["series"].contains("noise_scale"));  // null so far
  EXPECT_EQ(run["start"], (Json{{"parameters", 123}, {"backend", "cpu"}, {"pairs", 9}}));
  EXPECT_EQ(run["updated"], "2026-11-27T10:00:30Z");
  record("run", {{"type", "stop"}, {"step", 20}, {"reason", "complete: train.max-steps 20"}});
  run = json();
  EXPECT_EQ(run["state"], "finished");
  EXPECT_EQ(run["reason"], "complete: train.max-steps 20");
  EXPECT_EQ(run["events"], 4);
}

TEST_F(RunRecordTest, TellsHowARunEnded) {
  const auto state = [&](const std::string& reason) {
    record("run", {{"type", "stop"}, {"step", 1}, {"reason", reason}});
    refresh();
    return record_.state(kNow);
  };
  EXPECT_EQ(state("early stopping: bleu not better in 3 validations"), "finished");
  EXPECT_EQ(state("interrupted; the same command continues"), "stopped");
  EXPECT_EQ(state("error: rank 3 on beta does not answer"), "failed");
  record("run", {{"type", "start"}, {"step", 1}});
  refresh();
  EXPECT_EQ(record_.state(kNow), "running");
  EXPECT_EQ(record_.state(kNow + 3600), "silent");
}

// A run whose reports are twenty minutes apart is not silent after ten.
TEST_F(RunRecordTest, SlowRunsAreNotSilent) {
  report("run", 1, 5, "2026-11-27T10:00:00Z");
  report("run", 2, 5, "2026-11-27T10:20:00Z");
  refresh();
  EXPECT_EQ(record_.state(*seconds_of("2026-11-27T11:30:00Z")), "running");
  EXPECT_EQ(record_.state(*seconds_of("2026-11-27T11:50:00Z")), "silent");
}

TEST_F(RunRecordTest, AResumedRunReplacesWhatItRepeats) {
  const auto validation = [&](int64_t step, double score) {
    record("run",
           {{"type", "validation"}, {"step", step}, {"scores", {{"bleu", score}}}, {"metric", "bleu"}, {"best", true}, {"seconds", 1}});
  };
  for (int step = 10; step <= 50; step += 10) report("run", step, 100 - step);
  validation(20, 1);
  validation(40, 2);
  record("run", {{"type", "start"}, {"step", 30}});
  report("run", 40, 7);
  validation(40, 3);
  const Json run = json();
  EXPECT_EQ(run["series"]["loss"], (Json{{"step", {10, 20, 30, 40}}, {"value", {90, 80, 70, 7}}}));
  ASSERT_EQ(run["validation"]["points"].size(), 2u);
  EXPECT_EQ(run["validation"]["points"][1]["scores"]["bleu"], 3);
  EXPECT_EQ(run["validation"]["metric"], "bleu");
}

TEST_F(RunRecordTest, ARunThatIsBegunAnewIsReadAnew) {
  for (int step = 1; step < 100; ++step) report("run", step, step);
  json();
  std::filesystem::remove(path("run/events.jsonl"));
  report("run", 1, 0.5);
  EXPECT_EQ(json()["series"]["loss"], (Json{{"step", {1}}, {"value", {0.5}}}));
}

TEST_F(RunRecordTest, SurvivesWhatIsNoRecord) {
  append("run/events.jsonl", "{\"type\":\"report\",\"step\n[1]\n\xff\xfe\n" + std::string(5000, '[') + "\n\n");
  append("run/events.jsonl", R"({"type":"report","step":"x"})"
                             "\n"
                             R"({"type":3,"step":1,"time":[]})"
                             "\n");
  append("run/events.jsonl", R"({"type":"communication","step":1,"seconds":0,"waited":{}})"
                             "\n"
                             R"({"type":"validation","step":{},"scores":3})"
                             "\n");
  append("run/config.yml", "train: [unclosed");
  report("run", 5, 1);
  const Json run = json();
  EXPECT_EQ(run["broken_lines"], 5);
  EXPECT_EQ(run["last"]["step"], 5);
  EXPECT_EQ(run["configuration"], Json::object());
}

TEST_F(RunRecordTest, SharesOfWaiting) {
  record("run", {{"type", "communication"}, {"step", 10}, {"seconds", 20}, {"waited", {1, 5}}, {"bytes_per_update", {100, 200}}});
  const Json run = json();
  EXPECT_EQ(run["ranks"], (Json{{"step", 10}, {"waited", {0.05, 0.25}}, {"bytes", {100, 200}}}));
  EXPECT_NEAR(run["series"]["efficiency"]["value"][0].get<double>(), 0.85, 1e-12);
}

TEST_F(RunRecordTest, ConfigurationLogAndSentences) {
  append("run/config.yml",
         "train:\n  max-steps: 10  # a comment\ndata:\n  train:\n    - source: x\n    - source: y\nvalid:\n  metrics: [bleu, chrf]\n");
  for (int i = 0; i < 100; ++i) append("run/train.log", "line " + std::to_string(i) + "\n");
  append("run/validations/0000100.txt", "A\nB\nC\nD\nE\nF\nG\nH\nI\nJ\n");
  append("run/validations/0000200.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
  append("run/validations/sources.txt", "not of a validation\n");
  const Json run = json();
  EXPECT_EQ(run["configuration"]["train.max-steps"], "10");
  EXPECT_EQ(run["configuration"]["data.train.1.source"], "y");
  EXPECT_EQ(run["configuration"]["valid.metrics"], "bleu, chrf");
  EXPECT_EQ(run["log"].size(), 40u);
  EXPECT_EQ(run["log"].back(), "line 99");
  EXPECT_EQ(
      run["sentences"],
      (Json{{"by_step", {{{"step", 100}, {"lines", {"A", "C", "E", "G", "I"}}}, {{"step", 200}, {"lines", {"a", "c", "e", "g", "i"}}}}}}));
}

// What the run says of the sentences that are shown of its texts.
TEST_F(RunRecordTest, SourcesAndReferencesOfSentences) {
  append("run/validations/0000100.txt", "A\nB\nC\n");
  EXPECT_EQ(json()["sentences"].size(), 1u);
  append("run/validations/sentences.json",
         R"({"sentences":[{"line":2,"text":"en:de v.en","source":"c","reference":"3"},{"line":0,"text":"de:en v.de","source":"a",)"
         R"("reference":"1"},{"line":7,"source":{}},{"line":-1},4]})");
  EXPECT_EQ(json()["sentences"], (Json{{"source", {"c", "a", ""}},
                                       {"reference", {"3", "1", ""}},
                                       {"text", {"en:de v.en", "de:en v.de", ""}},
                                       {"by_step", {{{"step", 100}, {"lines", {"C", "A", ""}}}}}}));
}

TEST_F(RunRecordTest, ScoresOfSeveralTexts) {
  for (const int step : {10, 20})
    record("run", {{"type", "validation"},
                   {"step", step},
                   {"scores", {{"bleu", step}}},
                   {"metric", "bleu"},
                   {"by_text", {{"en:de v.en", {{"bleu", step + 1}}}, {"de:en v.de", {{"bleu", step - 1}}}}}});
  EXPECT_EQ(json()["validation"]["by_text"],
            (Json{{"step", {10, 20}}, {"texts", {{"en:de v.en", {{"bleu", {11, 21}}}}, {"de:en v.de", {{"bleu", {9, 19}}}}}}}));
}

// What is not of the run itself is not read, by whatever way a name leads there.
TEST_F(RunRecordTest, ReadsRegularFilesOfTheRunOnly) {
  append("secret.txt", "secret\nsecret\nsecret\nsecret\nsecret\n");
  append("elsewhere/0000009.txt", "secret\n");
  append("run/events.jsonl", "");
  append("run/config.yml", "valid:\n  source: " + path("secret.txt") + "\n  target: " + path("secret.txt") + "\n");
  std::filesystem::create_directories(path("run/validations"));
  std::filesystem::create_symlink(path("secret.txt"), path("run/train.log"));
  std::filesystem::create_symlink(path("secret.txt"), path("run/validations/0000100.txt"));
  append("run/validations/0000200.txt", "1\n2\n3\n4\n5\n");
  const Json run = json();
  EXPECT_EQ(run.dump().find("\"secret\""), std::string::npos) << run;
  EXPECT_EQ(run["sentences"]["by_step"].size(), 1u);
  std::filesystem::remove_all(path("run/validations"));
  std::filesystem::create_directory_symlink(path("elsewhere"), path("run/validations"));
  std::filesystem::remove(path("run/config.yml"));
  ASSERT_EQ(mkfifo(path("run/config.yml").c_str(), 0600), 0);  // nobody will write to it
  std::filesystem::remove(path("run/train.log"));
  std::filesystem::create_symlink("/dev/zero", path("run/train.log"));
  EXPECT_EQ(json()["sentences"], Json::object());
}

// A look ends when it has read what it may, and the next one goes on there.
TEST_F(RunRecordTest, LooksAreBounded) {
  for (int step = 1; step <= 30'000; ++step) report("run", step, 1);
  Look first{.bytes = 2 << 20};
  record_.refresh(first);
  EXPECT_TRUE(record_.more());
  const int64_t events = record_.json(kNow)["events"];
  EXPECT_GT(events, 1000);
  EXPECT_LT(events, 30'000);
  Look late{.until = std::chrono::steady_clock::now()};
  EXPECT_FALSE(record_.refresh(late));
  EXPECT_EQ(json()["events"], 30'000);
  EXPECT_FALSE(record_.more());
}

// A file that is read as a whole is never taken for one that ends where the look does.
TEST_F(RunRecordTest, LooksCutNoFile) {
  report("run", 1, 1);
  std::string keys = "train:\n", lines;
  for (int i = 0; i < 4000; ++i) keys += "  key" + std::to_string(i) + ": value\n", lines += "line " + std::to_string(i) + "\n";
  append("run/config.yml", keys);
  append("run/validations/5.txt", lines);
  append("run/validations/sentences.json", R"({"sentences":[{"line":3999},{"line":0},{"line":4000}]})");
  for (int looks = 0; looks < 5; ++looks) {
    Look small{.bytes = 4 << 10};
    record_.refresh(small);
  }
  const Json run = record_.json(kNow);
  EXPECT_EQ(run["configuration"]["train.key3999"], "value");
  EXPECT_EQ(run["sentences"]["by_step"][0]["lines"], (Json{"line 3999", "line 0", ""}));
}

// A file of a terabyte that has nothing on the disk, a line of 40 MB, and a megabyte of lists in one record.
TEST_F(RunRecordTest, FilesWithoutEndAreReadInTime) {
  report("run", 1, 5);
  append("run/events.jsonl", std::string(40 << 20, 'x') + "\n");
  std::string lists = R"({"type":"validation","step":1,"scores":{"bleu":1,"a":[)";
  for (int i = 0; i < 300'000; ++i) lists += "[],";
  append("run/events.jsonl", lists + "[]]}}\n");
  report("run", 2, 4);
  std::filesystem::resize_file(path("run/events.jsonl"), uint64_t{1} << 40);
  const auto begin = std::chrono::steady_clock::now();
  for (int looks = 0; looks < 20 && (json(), record_.more()); ++looks) continue;
  EXPECT_FALSE(record_.more());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  const Json run = json();
  EXPECT_EQ(run["last"]["step"], 2);
  EXPECT_EQ(run["broken_lines"], 1);
  EXPECT_EQ(run["validation"]["points"][0]["scores"], (Json{{"bleu", 1}}));
  EXPECT_LT(run.dump().size(), 2000u);
}

// What is kept and shown does not grow with what records hold.
TEST_F(RunRecordTest, ValuesOfRecordsAreBounded) {
  Json names, many;
  for (int i = 0; i < 3000; ++i) names["metric" + std::to_string(i)] = i, many["key" + std::to_string(i)] = std::string(90, 'x');
  for (const double step : {-1.0, 1e300, 5.0, 5.5})
    record("run",
           {{"type", "validation"}, {"step", step}, {"scores", names}, {"by_text", {{std::string(5000, 't'), names}, {"x", names}}}});
  many["type"] = "checkpoint", many["step"] = 5;
  record("run", many);
  record("run", {{"type", "guard"}, {"step", 9}, {"back_to", 1e300}});
  record("run", {{"type", "stop"}, {"step", 5}, {"reason", std::string(100'000, 'r')}});
  append(
      "run/config.yml", std::string(100'000, 'k') + ":\n" + []() {
        std::string keys;
        for (int i = 0; i < 10'000; ++i) keys += "  k" + std::to_string(i) + ": v\n";
        return keys;
      }());
  const Json run = json();
  EXPECT_EQ(run["validation"]["points"].size(), 2u);
  EXPECT_LE(run["checkpoint"].size(), 100u);
  EXPECT_LT(run.dump().size(), 100'000u);
}

}  // namespace
}  // namespace starling
