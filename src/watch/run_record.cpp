#include "watch/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/iso_time.h"
#include "base/json.h"
#include "watch/run_files.h"

namespace starling {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kBlock = 4 << 20;         // bytes read at once
constexpr uint64_t kLongestLine = 16 << 20;  // a longer one is no record of ours
constexpr size_t kLogLines = 40;
constexpr size_t kMostValidations = 2000;
constexpr double kSilentSeconds = 300, kSilentFactor = 4;  // a run is silent after this time and so many of its intervals

// Numbers of a report that are drawn, by their keys.
constexpr const char* kDrawn[] = {"loss",       "learning_rate", "gradient_norm", "noise_scale", "target_tokens_per_second",
                                  "memory_mib", "clipped",       "consistency",   "reward",      "alignment"};

std::string text_of(const Json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<double> number_of(const Json& record, const char* key) {
  const auto found = record.find(key);
  if (found == record.end() || !found->is_number()) return std::nullopt;
  const auto value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

RunRecord::RunRecord(std::string directory) : directory_(std::move(directory)) {}

bool RunRecord::refresh() {
  bool changed = false;
  const std::string events = directory_ + "/events.jsonl";
  if (const auto mark = file_mark(events)) {
    if (mark->inode != inode_ || mark->size < read_) {  // another file: the run was begun anew
      RunRecord fresh(directory_);
      std::swap(*this, fresh);
      inode_ = mark->inode;
      changed = true;
    }
    while (read_ < mark->size) {
      const std::string block = bytes_from(events, read_, kBlock);
      if (block.empty()) break;
      read_ += block.size();
      changed = true;
      rest_ += block;
      size_t at = 0;
      for (size_t end; (end = rest_.find('\n', at)) != std::string::npos; at = end + 1) {
        try {
          take(parse_json_object(std::string_view(rest_).substr(at, end - at), events));
        } catch (const DataError&) {  // half a line of a process that was killed, for instance
          ++broken_lines_;
        }
      }
      rest_.erase(0, at);
      if (rest_.size() > kLongestLine) rest_.clear();
    }
  }
  if (const auto mark = file_mark(directory_ + "/config.yml"); mark && mark->text() != configuration_read_) {
    configuration_ = flat_configuration(directory_ + "/config.yml");
    configuration_read_ = mark->text();
    changed = true;
  }
  if (const auto mark = file_mark(directory_ + "/train.log"); mark && mark->size != log_size_) {
    log_ = last_lines(directory_ + "/train.log", kLogLines);
    log_size_ = mark->size;
    changed = true;
  }
  return read_sentences() || changed;
}

bool RunRecord::read_sentences() {
  const std::string mark = kept_sentences_mark(directory_);
  if (mark == sentences_read_) return false;
  sentences_ = kept_sentences(directory_, configuration_);
  sentences_read_ = mark;
  return true;
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
  if (type == "checkpoint") checkpoint_ = record;
  if (type == "validation" && record.contains("step") && record.value("scores", Json()).is_object()) {
    metric_ = text_of(record, "metric");
    Json point{{"step", record["step"]},
               {"scores", record["scores"]},
               {"best", record.value("best", Json(false))},
               {"seconds", record.value("seconds", Json())}};
    if (validations_.size() == kMostValidations) validations_.erase(validations_.front()["best"] == true ? 1 : 0);
    validations_.push_back(std::move(point));
  }
  if (const auto back = number_of(record, "back_to"); type == "guard" && back) forget_after(static_cast<int64_t>(*back));
  if (type == "stop") {
    stopped_ = true;
    stop_reason_ = text_of(record, "reason");
  }
}

// A process begins, or goes on after the update of a checkpoint.
void RunRecord::start(const Json& record) {
  stopped_ = false;
  stop_reason_.clear();
  start_ = record;
  for (const char* key : {"schema", "type", "time", "step"}) start_.erase(key);
  forget_after(static_cast<int64_t>(number_of(record, "step").value_or(0)));
}

// The run goes on after this update: what was recorded of later ones is replaced by what follows.
void RunRecord::forget_after(int64_t step) {
  for (auto& [key, series] : series_) series.forget_after(step);
  Json kept = Json::array();
  for (const Json& point : validations_)
    if (number_of(point, "step").value_or(0) <= static_cast<double>(step)) kept.push_back(point);
  validations_ = std::move(kept);
}

void RunRecord::report(const Json& record) {
  const auto step = number_of(record, "step");
  if (!step) return;
  last_report_ = record;
  for (const char* key : kDrawn)
    if (const auto value = number_of(record, key)) series_[key].add(static_cast<int64_t>(*step), *value);
}

void RunRecord::communication(const Json& record) {
  const auto step = number_of(record, "step"), seconds = number_of(record, "seconds");
  const Json waited = record.value("waited", Json());
  if (!step || !seconds || *seconds <= 0 || !waited.is_array() || waited.empty()) return;
  Json shares = Json::array();
  double sum = 0;
  for (const Json& each : waited) {
    const double share = each.is_number() ? each.get<double>() / *seconds : 0;
    shares.push_back(share);
    sum += share;
  }
  series_["efficiency"].add(static_cast<int64_t>(*step), 1 - sum / static_cast<double>(waited.size()));
  ranks_ = {{"step", *step}, {"waited", shares}, {"bytes", record.value("bytes_per_update", Json::array())}};
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
           {"validation", {{"metric", metric_}, {"points", validations_}}},
           {"checkpoint", checkpoint_},
           {"sentences", sentences_},
           {"configuration", configuration_},
           {"log", log_},
           {"events", events_},
           {"broken_lines", broken_lines_}};
  if (!ranks_.empty()) run["ranks"] = ranks_;
  return run;
}

}  // namespace starling
