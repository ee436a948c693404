#include "watch/run_record.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/iso_time.h"
#include "base/json.h"
#include "progress/statistics.h"
#include "watch/record_values.h"

namespace starling {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kBlock = 256 << 10;      // bytes read at once
constexpr uint64_t kLongestLine = 1 << 20;  // a longer one is no record of ours
constexpr size_t kLogLines = 40;
constexpr size_t kMostRanks = 10'000;
constexpr double kSilentSeconds = 300, kSilentFactor = 4;  // a run is silent after this time and so many of its intervals

// Of records of communication, by its key in the series.
constexpr const char* kEfficiency = "efficiency";
constexpr Panel kEfficiencyPanel{
    .title = "Efficiency", .unit = "share of the time not waiting", .place = 6, .zero = true, .percent = true, .digits = 3};

}  // namespace

Json panels() {
  std::vector<std::pair<const char*, Panel>> all = {{kEfficiency, kEfficiencyPanel}};
  for (const Statistic& s : kStatistics)
    if (s.panel.title) all.emplace_back(s.key, s.panel);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second.place < b.second.place; });
  Json list = Json::array();
  for (const auto& [key, panel] : all)
    list.push_back({{"key", key},
                    {"title", panel.title},
                    {"unit", panel.unit},
                    {"robust", panel.robust},
                    {"log", panel.log},
                    {"zero", panel.zero},
                    {"percent", panel.percent},
                    {"digits", panel.digits}});
  return list;
}

RunRecord::RunRecord(std::string directory) : directory_(std::move(directory)) {}

bool RunRecord::refresh(Look& look) {
  bool changed = read_events(look);
  if (const auto file = RunFile::open(directory_, "config.yml"); file && !look.over() && file->mark().text() != configuration_read_) {
    configuration_ = flat_configuration(*file, look);
    configuration_read_ = file->mark().text();
    changed = true;
  }
  if (const auto file = RunFile::open(directory_, "train.log"); file && !look.over() && file->mark().text() != log_read_) {
    log_ = last_lines(*file, kLogLines, look);
    log_read_ = file->mark().text();
    changed = true;
  }
  return sentences_.refresh(directory_, look) || changed;
}

bool RunRecord::read_events(Look& look) {
  const auto file = RunFile::open(directory_, "events.jsonl");
  more_ = false;
  if (!file) return false;
  bool changed = false;
  if (file->mark().inode != inode_ || file->mark().size < read_) {  // another file: the run was begun anew
    RunRecord fresh(directory_);
    std::swap(*this, fresh);
    inode_ = file->mark().inode;
    changed = true;
  }
  while (read_ < file->mark().size) {
    if (skips_) read_ = file->after_hole(read_);  // a file of a terabyte may have no byte on the disk
    more_ = look.over();
    const std::string block = more_ ? "" : file->read(read_, kBlock, look);
    if (block.empty()) break;
    read_ += block.size();
    take_block(block);
    changed = true;
  }
  return changed;
}

void RunRecord::take_block(std::string_view block) {
  while (!block.empty()) {
    const size_t end = block.find('\n');
    const std::string_view part = block.substr(0, end);
    if (!skips_) rest_ += part;
    if (rest_.size() > kLongestLine) {
      rest_.clear();
      skips_ = true;
    }
    if (end == std::string_view::npos) return;
    if (skips_)
      ++broken_lines_;
    else
      take_line(rest_);
    rest_.clear();
    skips_ = false;
    block.remove_prefix(end + 1);
  }
}

void RunRecord::take_line(std::string_view line) {
  try {
    take(parse_json_object(line, "events.jsonl"));
  } catch (const DataError&) {  // half a line of a process that was killed, for instance
    ++broken_lines_;
  }
}

void RunRecord::take(const Json& record) {
  ++events_;
  const std::string type = text_of(record, "type"), time = text_of(record, "time");
  if (const auto now = seconds_of(time), before = seconds_of(updated_); now && before && type != "start")
    interval_ = std::max(interval_, *now - *before);
  if (!time.empty()) updated_ = time;
  if (started_.empty()) started_ = time;
  if (type == "start") start(record);
  if (type == "report") report(record);
  if (type == "communication") communication(record);
  if (type == "checkpoint") checkpoint_ = plain_values(record);
  if (type == "validation") validations_.add(record);
  if (const auto back = step_of(record, "back_to"); type == "guard" && back) forget_after(*back);
  if (type == "stop") {
    stopped_ = true;
    stop_reason_ = text_of(record, "reason");
  }
}

// A process begins, or goes on after the update of a checkpoint.
void RunRecord::start(const Json& record) {
  stopped_ = false;
  stop_reason_.clear();
  start_ = plain_values(record);
  for (const char* key : {"schema", "type", "time", "step"}) start_.erase(key);
  forget_after(step_of(record, "step").value_or(0));
}

// The run goes on after this update: what was recorded of later ones is replaced by what follows.
void RunRecord::forget_after(int64_t step) {
  for (auto& [key, series] : series_) series.forget_after(step);
  validations_.forget_after(step);
}

void RunRecord::report(const Json& record) {
  const auto step = step_of(record, "step");
  if (!step) return;
  last_report_ = plain_values(record);
  for (const Statistic& s : kStatistics)
    if (const auto value = s.panel.title ? number_of(record, s.key) : std::nullopt) series_[s.key].add(*step, *value);
}

void RunRecord::communication(const Json& record) {
  const auto step = step_of(record, "step");
  const auto seconds = number_of(record, "seconds");
  const auto waited = record.find("waited"), sent = record.find("bytes_per_update");
  if (!step || !seconds || *seconds <= 0 || waited == record.end() || !waited->is_array() || waited->empty()) return;
  const auto numbers = [](const Json& list, double unit) {
    std::vector<double> of;
    for (size_t i = 0; i < std::min(list.size(), kMostRanks); ++i) of.push_back(list[i].is_number() ? list[i].get<double>() / unit : 0);
    return of;
  };
  const std::vector<double> shares = numbers(*waited, *seconds);
  const double mean = std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size());
  if (std::isfinite(mean)) series_[kEfficiency].add(*step, 1 - mean);
  const bool is_list = sent != record.end() && sent->is_array();
  ranks_ = {{"step", *step}, {"waited", shares}, {"bytes", is_list ? numbers(*sent, 1) : std::vector<double>()}};
}

std::string RunRecord::state(double now) const {
  if (events_ == 0) return "empty";
  if (stopped_) {
    if (stop_reason_.starts_with("error")) return "failed";
    return stop_reason_.starts_with("complete") || stop_reason_.starts_with("early stopping") ? "finished" : "stopped";
  }
  const auto last = seconds_of(updated_);
  return last && now - *last > std::max(kSilentSeconds, kSilentFactor * interval_) ? "silent" : "running";
}

Json RunRecord::json(double now) const {
  Json series = Json::object();
  for (const auto& [key, values] : series_)
    if (!values.empty()) series[key] = values.json();
  Json run{{"path", directory_},
           {"state", state(now)},
           {"reason", stop_reason_},
           {"started", started_},
           {"updated", updated_},
           {"start", start_},
           {"last", last_report_},
           {"series", series},
           {"validation", validations_.json()},
           {"checkpoint", checkpoint_},
           {"sentences", sentences_.json()},
           {"configuration", configuration_},
           {"log", log_},
           {"events", events_},
           {"broken_lines", broken_lines_}};
  if (!ranks_.empty()) run["ranks"] = ranks_;
  return run;
}

}  // namespace starling
