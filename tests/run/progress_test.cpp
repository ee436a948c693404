// Reports with an injected clock and screen: the exact lines, the records, the live line's width, appending after a resume.
#include "progress/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/text_files.h"
#include "progress/statistics.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ProgressTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/starling_progress_XXXXXX";
    ASSERT_TRUE(mkdtemp(name));
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  ProgressOptions options(bool live = false) {
    ProgressOptions o;
    o.directory = directory_;
    o.live = live;
    o.console = [this](std::string_view text) { screen_ += text; };
    o.width = [this] { return width_; };
    o.now = [this] { return ProgressOptions::Time(std::chrono::milliseconds(now_ms_)); };
    return o;
  }
  std::vector<std::string> lines(const std::string& name) {
    std::ifstream file(directory_ + "/" + name);
    std::vector<std::string> out;
    for (std::string line; std::getline(file, line);) out.push_back(line);
    return out;
  }
  static TrainReport sample(int64_t step) {
    TrainReport r;
    r.step = step, r.max_steps = 1000, r.epoch = 2, r.loss = 3.25, r.sentences = 10, r.source_tokens = 180, r.target_tokens = 200;
    r.seconds = 0.5, r.learning_rate = 5e-4, r.gradient_norm = 1.5;
    return r;
  }

  std::string directory_, screen_;
  int width_ = 80;
  int64_t now_ms_ = 1795244709000;
};

TEST_F(ProgressTest, LinesOnScreenAndInTheLog) {
  Progress p(options());
  p.report(sample(100));
  now_ms_ += 10000;
  p.report(sample(200));
  p.message("saved");
  EXPECT_THAT(
      lines("train.log"),
      ElementsAre("[2026-11-21T07:05:09Z] step 100 | epoch 2 | loss 3.2500 | 400 tok/s | lr 5.000e-04 | gnorm 1.500 | 10.0 %",
                  "[2026-11-21T07:05:19Z] step 200 | epoch 2 | loss 3.2500 | 400 tok/s | lr 5.000e-04 | gnorm 1.500 | 20.0 % | left 1:20",
                  "[2026-11-21T07:05:19Z] saved"));
  EXPECT_THAT(screen_, HasSubstr("step 200 | epoch 2"));
  EXPECT_THAT(screen_, Not(HasSubstr("\r")));
}

// The first updates generate code and are slow: nothing is told from fewer than three updates or two seconds behind the first report, and
// what was slow at the beginning is forgotten.
TEST_F(ProgressTest, TheTimeLeftIsToldFromEnoughAndForgetsASlowBeginning) {
  Progress p(options());
  const auto left = [&](int64_t step, int64_t milliseconds) {
    now_ms_ += milliseconds;
    p.report(sample(step));
    return nlohmann::json::parse(lines("events.jsonl").back())["seconds_left"];
  };
  EXPECT_TRUE(left(1, 0).is_null());
  EXPECT_TRUE(left(2, 20000).is_null()) << "one update";
  EXPECT_TRUE(left(3, 100).is_null()) << "two updates";
  EXPECT_NEAR(left(4, 100).get<double>(), 20.2 / 3 * 996, 1e-6);  // slow so far
  EXPECT_NEAR(left(104, 10000).get<double>(), 30.2 / 103 * 896, 1e-6);
  EXPECT_NEAR(left(304, 20000).get<double>(), 30.0 / 300 * 696, 1e-6) << "0.1 s an update since update 4";
  Progress quick(options());
  now_ms_ += 1;
  quick.report(sample(1));
  now_ms_ += 1900;
  quick.report(sample(900));
  EXPECT_TRUE(nlohmann::json::parse(lines("events.jsonl").back())["seconds_left"].is_null()) << "less than two seconds";
}

// What is told before the directory may be touched comes first in its files, with the time at which it was told.
TEST_F(ProgressTest, FilesMayBeOpenedLater) {
  ProgressOptions o = options();
  o.directory = "", o.files_later = true;
  {
    Progress p(o);
    p.message("early");
    p.event({{"type", "start"}, {"step", 0}});
    EXPECT_FALSE(std::filesystem::exists(directory_ + "/train.log"));
    now_ms_ += 10000;
    p.open_files(directory_);
    p.message("late");
  }
  EXPECT_THAT(lines("train.log"), ElementsAre("[2026-11-21T07:05:09Z] early", "[2026-11-21T07:05:19Z] late"));
  EXPECT_EQ(lines("events.jsonl").size(), 1u);
  EXPECT_THAT(screen_, HasSubstr("early"));
}

// TensorBoard drops what a resumed run, or one whose guard went back, says again.
TEST_F(ProgressTest, ScalarsBeginAgainWhereARunGoesOn) {
  ProgressOptions o = options();
  o.tensorboard = true;
  {
    Progress p(o);
    p.event({{"type", "start"}, {"step", 0}});
    p.event({{"type", "start"}, {"step", 20}});
    p.report(sample(21));
    p.event({{"type", "guard"}, {"step", 40}, {"back_to", 30}});
  }
  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(directory_ + "/tensorboard")) bytes += read_text_file(entry.path());
  const double seconds = static_cast<double>(now_ms_) / 1000;
  const size_t resumed = bytes.find(tensorboard_restart(seconds, 21)), back = bytes.find(tensorboard_restart(seconds, 31));
  EXPECT_EQ(resumed, tensorboard_header(seconds).size()) << "a new run forgets nothing";
  EXPECT_NE(back, std::string::npos);
  EXPECT_GT(back, resumed);
}

TEST_F(ProgressTest, Records) {
  Progress p(options());
  p.report(sample(100));
  TrainReport odd = sample(200);
  odd.loss = std::numeric_limits<double>::infinity();
  odd.seconds = 0;
  p.report(odd);
  ValidReport v;
  v.step = 200, v.epoch = 2, v.scores = {{"cross-entropy", 2.5}, {"bleu", 12.345}}, v.metric = "bleu", v.best = true, v.by = "bleu",
  v.seconds = 3;
  p.validation(v);
  p.event({{"type", "stop"}, {"step", 200}, {"reason", "bad byte \xFF"}});
  const auto text = lines("events.jsonl");
  ASSERT_EQ(text.size(), 4u);
  std::vector<nlohmann::json> records;
  for (const auto& line : text) records.push_back(nlohmann::json::parse(line));
  for (const auto& r : records) {
    EXPECT_EQ(r["schema"], 1);
    EXPECT_EQ(r["time"], "2026-11-21T07:05:09Z");
    EXPECT_TRUE(r.contains("type"));
    EXPECT_TRUE(r.contains("step"));
  }
  EXPECT_TRUE(text[0].starts_with("{\"schema\":1,\"type\":\"report\",\"time\":"));
  EXPECT_EQ(records[0]["target_tokens_per_second"], 400.0);
  EXPECT_EQ(records[0]["fraction"], 0.1);
  EXPECT_TRUE(records[0]["seconds_left"].is_null());
  EXPECT_TRUE(records[1]["loss"].is_null());
  EXPECT_TRUE(records[1]["target_tokens_per_second"].is_null());
  EXPECT_EQ(records[2]["scores"]["bleu"], 12.345);
  EXPECT_EQ(records[2]["best"], true);
  EXPECT_THAT(lines("train.log").at(2),
              HasSubstr("[valid] step 200 | epoch 2 | cross-entropy 2.5000 | bleu 12.35 | new best bleu | took 3.0 s"));
  EXPECT_FALSE(records[2].contains("length_ratio"));
  v.by = "chrf", v.length_ratio = 0.964;
  p.validation(v);
  EXPECT_EQ(nlohmann::json::parse(lines("events.jsonl").back())["length_ratio"], 0.964);
  EXPECT_THAT(lines("train.log").back(), HasSubstr(" | bleu 12.35 | length 0.96 | new best by chrf, bleu being equal | took"));
  v.by = "";
  p.validation(v);
  EXPECT_THAT(lines("train.log").back(), HasSubstr(" | taken as the best, bleu being equal | took"));
  v.best = false, v.stalled = 1;
  p.validation(v);
  EXPECT_THAT(lines("train.log").back(), HasSubstr(" | bleu stalled 1 time | took"));
  v.scores = {{"script", -1e308}, {"bleu", 1.0}};
  p.validation(v);
  EXPECT_THAT(lines("train.log").back(), HasSubstr(" | script -1e+308 | bleu 1.00 |"));
  EXPECT_THROW(p.event({{"step", 1}}), InternalError);
}

TEST_F(ProgressTest, RefinementReportsItsSamples) {
  Progress p(options());
  TrainReport r = sample(100);
  p.report(r);
  r.reward = 0.4567, r.distinct = 0.925;
  p.report(r);
  EXPECT_THAT(lines("train.log").at(1), HasSubstr("| loss 3.2500 | reward 0.4567 | distinct 92.5 % | 400 tok/s |"));
  const auto text = lines("events.jsonl");
  EXPECT_FALSE(nlohmann::json::parse(text.at(0)).contains("reward"));
  EXPECT_EQ(nlohmann::json::parse(text.at(1))["reward"], 0.4567);
  EXPECT_EQ(nlohmann::json::parse(text.at(1))["distinct"], 0.925);
}

// What readers of the log, of events.jsonl and of TensorBoard rely on, with every number known: order, names and digits.
TEST_F(ProgressTest, EveryNumberInEachOfItsPlaces) {
  ProgressOptions o = options();
  o.tensorboard = true;
  TrainReport r = sample(100);
  r.noise_scale = 2345.6, r.clipped = 0.0123, r.reward = 0.25, r.distinct = 0.5, r.consistency = 0.125, r.alignment = 1.5;
  r.memory = 64 << 20, r.virtual_time = true;
  Progress p(o);
  p.report(r);
  EXPECT_EQ(lines("train.log").at(0),
            "[2026-11-21T07:05:09Z] step 100 | epoch 2 | loss 3.2500 | consistency 0.1250 | alignment 1.5000 | reward 0.2500 | "
            "distinct 50.0 % | 400 tok/s virtual | lr 5.000e-04 | gnorm 1.500 | noise 2346 tok | clipped 1.23 % | 10.0 %");
  EXPECT_EQ(lines("events.jsonl").at(0),
            R"({"schema":1,"type":"report","time":"2026-11-21T07:05:09Z","step":100,"epoch":2,"loss":3.25,"sentences":10,)"
            R"("source_tokens":180,"target_tokens":200,"seconds":0.5,"target_tokens_per_second":400.0,"source_tokens_per_second":360.0,)"
            R"("learning_rate":0.0005,"gradient_norm":1.5,"noise_scale":2345.6,"clipped":0.0123,"memory_mib":64.0,"fraction":0.1,)"
            R"("seconds_left":null,"consistency":0.125,"alignment":1.5,"reward":0.25,"distinct":0.5})");
  const double seconds = static_cast<double>(now_ms_) / 1000;
  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(directory_ + "/tensorboard")) bytes += read_text_file(entry.path());
  EXPECT_EQ(bytes, tensorboard_header(seconds) + tensorboard_record(seconds, 100,
                                                                    {{"train/epoch", 2},
                                                                     {"train/loss", 3.25},
                                                                     {"train/ppl", std::exp(3.25)},
                                                                     {"train/reward", 0.25},
                                                                     {"train/wps", 400},
                                                                     {"train/lr", 5e-4},
                                                                     {"train/gnorm", 1.5},
                                                                     {"train/noise_scale", 2345.6}}));
}

// Returns the words in ` of the first cells of the table in a section.
std::multiset<std::string> keys_of_section(const std::string& document, const std::string& heading) {
  const size_t begin = document.find("\n" + heading + "\n"), end = document.find("\n## ", begin + 1);
  EXPECT_NE(begin, std::string::npos) << heading;
  std::istringstream section(document.substr(begin, end - begin));
  std::multiset<std::string> keys;
  for (std::string row; std::getline(section, row);) {
    if (!row.starts_with("| `")) continue;
    std::istringstream cell(row.substr(2, row.find(" |", 2) - 2));
    for (std::string key; cell >> key;) keys.insert(key.substr(1, key.rfind('`') - 1));
  }
  return keys;
}

// The reference has a line for each number of the table, and for nothing else; `step` is among the keys of every record.
TEST_F(ProgressTest, EveryKeyIsDocumented) {
  const std::string document = read_text_file(STARLING_SOURCE_DIR "/docs/reference/events.md");
  std::multiset<std::string> keys;
  std::set<std::string> scalars, gauges;
  for (const Statistic& s : kStatistics) {
    if (s.key && s.key != std::string("step")) keys.insert(s.key);
    EXPECT_TRUE(!s.scalar || scalars.insert(s.scalar).second) << s.scalar;
    EXPECT_TRUE(!s.gauge || (s.help && gauges.insert(s.gauge).second)) << s.gauge;
    EXPECT_TRUE(s.key || (!s.gauge && !s.panel.title)) << "watch finds numbers by their keys";
  }
  EXPECT_EQ(keys_of_section(document, "## report"), keys);
  Progress(options()).validation({});
  const std::multiset<std::string> told = keys_of_section(document, "## validation");
  const auto record = nlohmann::json::parse(lines("events.jsonl").at(0));
  for (const auto& [key, value] : record.items())
    EXPECT_TRUE(told.contains(key) || key == "schema" || key == "type" || key == "time" || key == "step") << key;
}

TEST_F(ProgressTest, LiveLineFitsAndLeavesNothingBehind) {
  {
    Progress p(options(true));
    p.report(sample(100));
    now_ms_ += 1000;
    for (const int width : {200, 60, 40, 10, 1, 0, 30}) {
      width_ = width;
      screen_.clear();
      now_ms_ += 1000;
      p.tick(sample(500));
      const size_t columns = screen_.size() - 1;
      EXPECT_EQ(screen_[0], '\r');
      EXPECT_LE(columns, static_cast<size_t>(std::max(width - 1, 1))) << screen_;
    }
    EXPECT_THAT(screen_, HasSubstr("step 500 | loss 3.2500"));
    screen_.clear();
    p.message("hello");
    EXPECT_TRUE(screen_.starts_with("\r "));
    EXPECT_THAT(screen_, HasSubstr("\rhello\nstep 500"));
    screen_.clear();
  }
  EXPECT_EQ(screen_, "\n");
  EXPECT_EQ(lines("train.log").size(), 2u);
}

// Whoever scrolls back sees every report, though not what does not fit into a line.
TEST_F(ProgressTest, ReportsStayAboveTheLiveLine) {
  Progress p(options(true));
  width_ = 61;
  p.tick(sample(99));
  screen_.clear();
  p.report(sample(100));
  p.tick(sample(101));
  now_ms_ += 1000;
  p.report(sample(200));
  EXPECT_THAT(screen_, HasSubstr("\rstep 100 | epoch 2 | loss 3.2500 | 400 tok/s | 10.0 %\n\rstep 100 | "));
  EXPECT_THAT(screen_, HasSubstr("\rstep 200 | epoch 2 | loss 3.2500 | 400 tok/s | 20.0 %\n\rstep 200 | "));
  EXPECT_EQ(std::count(screen_.begin(), screen_.end(), '\n'), 2) << screen_;
  EXPECT_THAT(lines("train.log").at(1), HasSubstr("| gnorm 1.500 |")) << "the log has all of it";
}

TEST_F(ProgressTest, LiveLineIsDrawnAtMostFiveTimesASecond) {
  Progress p(options(true));
  p.tick(sample(1));
  screen_.clear();
  now_ms_ += 100;
  p.tick(sample(2));
  EXPECT_EQ(screen_, "");
  now_ms_ += 150;
  p.tick(sample(3));
  EXPECT_THAT(screen_, HasSubstr("step 3"));
}

TEST_F(ProgressTest, ResumeAppendsAndMendsAHalfWrittenLine) {
  { Progress(options()).report(sample(100)); }
  std::ofstream(directory_ + "/events.jsonl", std::ios::app) << "{\"schema\":1,\"ty";
  { Progress(options()).report(sample(200)); }
  const auto text = lines("events.jsonl");
  ASSERT_EQ(text.size(), 3u);
  EXPECT_EQ(nlohmann::json::parse(text[0])["step"], 100);
  EXPECT_EQ(nlohmann::json::parse(text[2])["step"], 200);
}

TEST_F(ProgressTest, UnwritableFilesAreErrors) {
  ProgressOptions o = options();
  o.directory += "/missing";
  EXPECT_THROW(Progress{o}, IoError);
}

// A limit on the size of files stands in for a full disk.
TEST_F(ProgressTest, AFullDiskLosesLinesAndNothingElse) {
  const std::string events = directory_ + "/events.jsonl";
  std::ofstream(events) << std::string(5000, ' ') << "\n";
  Progress p(options());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit full = before;
  full.rlim_cur = 5101;  // room for a part of a record
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  testing::internal::CaptureStderr();
  p.report(sample(1));
  p.report(sample(2));
  const std::string told = testing::internal::GetCapturedStderr();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(told, testing::StartsWith("starling: warning: " + events + ": "));
  EXPECT_THAT(told, testing::EndsWith("; lines are lost, and the training goes on\n"));
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  p.report(sample(3));  // there is room again
  const auto text = lines("events.jsonl");
  EXPECT_EQ(nlohmann::json::parse(text.back())["step"], 3);
  EXPECT_EQ(lines("train.log").size(), 3u);
}

TEST(Duration, Text) {
  EXPECT_EQ(duration_text(5), "0:05");
  EXPECT_EQ(duration_text(725), "12:05");
  EXPECT_EQ(duration_text(3 * 3600 + 12 * 60 + 5), "3:12:05");
  EXPECT_EQ(duration_text(2 * 86400 + 3 * 3600 + 12 * 60), "2d 03:12");
  EXPECT_EQ(duration_text(-1), "?");
  EXPECT_EQ(duration_text(1e300), "?");
}

TEST_F(ProgressTest, AFailureIsARecordOfTheEnd) {
  Progress p(options());
  p.failure(7, "corpus.de:3: is wrong", 2);
  ASSERT_EQ(lines("events.jsonl").size(), 1u);
  EXPECT_THAT(lines("events.jsonl")[0],
              HasSubstr(R"("type":"stop","time":"2026-11-21T07:05:09Z","step":7,"reason":"error: corpus.de:3: is wrong","seconds":2.0)"));
}

}  // namespace
}  // namespace starling
