// What is read of a run while it writes: records, configuration, log, kept translations.
#include "watch/run_record.h"

#include <gmock/gmock.h>

#include "base/iso_time.h"
#include "tests/watch/run_directories.h"

namespace starling {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;

const double kNow = *seconds_of("2026-11-27T10:01:00Z");

class RunRecordTest : public test::RunDirectories {
 protected:
  Json json() {
    record_.refresh();
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
  EXPECT_FALSE(record_.refresh());
  EXPECT_EQ(record_.state(kNow), "empty");
  record("run", {{"type", "start"}, {"step", 0}, {"parameters", 123}, {"backend", "cpu"}, {"pairs", 9}});
  report("run", 10, 5);
  EXPECT_TRUE(record_.refresh());
  EXPECT_FALSE(record_.refresh());
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
    record_.refresh();
    return record_.state(kNow);
  };
  EXPECT_EQ(state("early stopping: bleu not better in 3 validations"), "finished");
  EXPECT_EQ(state("interrupted; the same command continues"), "stopped");
  EXPECT_EQ(state("error: rank 3 on beta does not answer"), "failed");
  record("run", {{"type", "start"}, {"step", 1}});
  record_.refresh();
  EXPECT_EQ(record_.state(kNow), "running");
  EXPECT_EQ(record_.state(kNow + 3600), "silent");
}

// A run whose reports are twenty minutes apart is not silent after ten.
TEST_F(RunRecordTest, SlowRunsAreNotSilent) {
  report("run", 1, 5, "2026-11-27T10:00:00Z");
  report("run", 2, 5, "2026-11-27T10:20:00Z");
  record_.refresh();
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
  append("text.en", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
  append("text.de", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n");
  append("run/config.yml", "train:\n  max-steps: 10  # a comment\ndata:\n  train:\n    - source: x\n    - source: y\nvalid:\n  source: " +
                               path("text.en") + "\n  target: " + path("text.de") + "\n  metrics: [bleu, chrf]\n");
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
  const Json& sentences = run["sentences"];
  EXPECT_EQ(sentences["source"], (Json{"a", "c", "e", "g", "i"}));
  EXPECT_EQ(sentences["reference"], (Json{"1", "3", "5", "7", "9"}));
  EXPECT_EQ(sentences["by_step"],
            (Json{{{"step", 100}, {"lines", {"A", "C", "E", "G", "I"}}}, {{"step", 200}, {"lines", {"a", "c", "e", "g", "i"}}}}));
}

}  // namespace
}  // namespace starling
