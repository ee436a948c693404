#include "watch/watched_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/iso_time.h"
#include "base/version.h"
#include "watch/run_files.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

constexpr int kDepth = 3;                // levels below a directory in which runs are looked for
constexpr double kFindSeconds = 5;       // between two looks for new runs
constexpr double kRefreshSeconds = 0.5;  // between two looks at files
constexpr size_t kMostRuns = 200;

double steady_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double now_seconds() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// Returns whether a run has begun there; its log exists before its first record.
bool is_run(const fs::path& path) {
  std::error_code error;
  return fs::exists(path / "events.jsonl", error) || fs::exists(path / "train.log", error);
}

void find_runs(const fs::path& path, int depth, std::vector<fs::path>& found) {
  if (is_run(path)) return found.push_back(path);
  if (depth == 0) return;
  std::error_code error;
  std::vector<fs::path> below;
  for (const auto& entry : fs::directory_iterator(path, fs::directory_options::skip_permission_denied, error))
    if (entry.is_directory(error) && !entry.is_symlink(error)) below.push_back(entry.path());
  std::sort(below.begin(), below.end());
  for (const fs::path& each : below) find_runs(each, depth - 1, found);
}

// The shortest ends of the paths that tell them apart: "a/run" and "b/run", but "small" and "large" of "out/small" and "out/large".
std::vector<std::string> short_names(const std::vector<fs::path>& paths) {
  const auto ending = [](const fs::path& path, size_t parts) {
    const std::vector<fs::path> all(path.begin(), path.end());
    fs::path end;
    for (size_t i = all.size() - std::min(parts, all.size()); i < all.size(); ++i) end /= all[i];
    return end.string();
  };
  for (size_t parts = 1;; ++parts) {
    std::vector<std::string> names;
    for (const fs::path& path : paths) names.push_back(ending(path, parts));
    std::vector<std::string> sorted = names;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() || parts > 40) return names;
  }
}

std::string label(const std::string& name) {
  std::string escaped;
  for (const char c : name) escaped += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
  return escaped;
}

}  // namespace

WatchedRuns::WatchedRuns(std::vector<std::string> paths) : paths_(std::move(paths)) {
  for (const std::string& path : paths_) {
    std::error_code error;
    if (!fs::exists(path, error)) throw ConfigError(fmt::format("{}: does not exist; name the directories of runs (train.output)", path));
    if (!fs::is_directory(path, error)) throw ConfigError(fmt::format("{}: is not a directory; name the directories of runs", path));
  }
  find();
  if (runs_.empty())
    throw ConfigError(
        fmt::format("{}: there is no run in it (no events.jsonl, up to {} levels below); name the directory of a run, "
                    "which train.output names",
                    paths_[0], kDepth));
}

void WatchedRuns::find() {
  found_at_ = steady_seconds();
  std::vector<fs::path> found;
  for (const std::string& path : paths_) {
    fs::path plain = fs::path(path).lexically_normal();
    if (!plain.has_filename()) plain = plain.parent_path();
    if (plain == "." || plain == "..") plain = fs::absolute(plain).lexically_normal();
    if (!plain.has_filename()) plain = plain.parent_path();
    find_runs(plain, kDepth, found);
  }
  std::vector<fs::path> different;
  for (const fs::path& path : found)
    if (std::find(different.begin(), different.end(), path) == different.end() && different.size() < kMostRuns) different.push_back(path);
  bool same = different.size() == runs_.size();
  for (size_t i = 0; same && i < runs_.size(); ++i) same = runs_[i].record.directory() == different[i].string();
  if (same) return;
  const std::vector<std::string> names = short_names(different);
  ++revision_;
  std::vector<Watched> runs;
  for (size_t i = 0; i < different.size(); ++i) {
    const auto known = std::find_if(runs_.begin(), runs_.end(), [&](const Watched& run) { return run.record.directory() == different[i]; });
    if (known != runs_.end())
      runs.push_back({names[i], std::move(known->record), revision_, known->state});
    else
      runs.push_back({names[i], RunRecord(different[i].string()), revision_, ""});
  }
  runs_ = std::move(runs);
}

void WatchedRuns::refresh() {
  const double now = steady_seconds();
  if (now - refreshed_at_ < kRefreshSeconds) return;
  if (now - found_at_ > kFindSeconds) find();
  for (Watched& run : runs_) {
    const bool changed = run.record.refresh();
    const std::string state = run.record.state(now_seconds());
    if (changed || state != run.state) run.revision = ++revision_;
    run.state = state;
  }
  refreshed_at_ = steady_seconds();
}

nlohmann::json WatchedRuns::changes(int64_t since) const {
  const double now = now_seconds();
  nlohmann::json names = nlohmann::json::array(), runs = nlohmann::json::array();
  for (const Watched& run : runs_) {
    names.push_back(run.name);
    if (run.revision <= since && since <= revision_) continue;  // a later revision is of a server before this one
    runs.push_back(run.record.json(now));
    runs.back()["name"] = run.name;
  }
  return {{"revision", revision_},
          {"version", kVersion},
          {"now", iso_time(std::chrono::system_clock::now())},
          {"names", names},
          {"runs", runs}};
}

std::string WatchedRuns::metrics() const {
  struct Metric {
    const char *name, *key, *help;
  };
  static constexpr Metric kMetrics[] = {
      {"starling_run_update", "step", "Updates done."},
      {"starling_run_epoch", "epoch", "Epoch, counted from 1."},
      {"starling_run_loss", "loss", "Training loss, nats per target token."},
      {"starling_run_learning_rate", "learning_rate", "Learning rate of the last update."},
      {"starling_run_gradient_norm", "gradient_norm", "Norm of the gradient before clipping."},
      {"starling_run_target_tokens_per_second", "target_tokens_per_second", "Target tokens trained on per second."},
      {"starling_run_fraction", "fraction", "Share of the run that is done, 0 to 1."},
      {"starling_run_seconds_left", "seconds_left", "Estimated time to the end, seconds."},
      {"starling_run_memory_mib", "memory_mib", "Resident memory of rank 0, MiB."},
  };
  std::string text;
  for (const Metric& metric : kMetrics) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", metric.name, metric.help);
    for (const Watched& run : runs_)
      if (const auto value = run.record.last_report().find(metric.key); value != run.record.last_report().end() && value->is_number())
        text += fmt::format("{}{{run=\"{}\"}} {}\n", metric.name, label(run.name), value->get<double>());
  }
  text += "# HELP starling_run_score Scores of the last validation.\n# TYPE starling_run_score gauge\n";
  for (const Watched& run : runs_) {
    if (run.record.validations().empty()) continue;
    for (const auto& [metric, score] : run.record.validations().back()["scores"].items())
      if (score.is_number())
        text += fmt::format("starling_run_score{{run=\"{}\",metric=\"{}\"}} {}\n", label(run.name), label(metric), score.get<double>());
  }
  text += "# HELP starling_run_state 1 for the state of each run.\n# TYPE starling_run_state gauge\n";
  for (const Watched& run : runs_) text += fmt::format("starling_run_state{{run=\"{}\",state=\"{}\"}} 1\n", label(run.name), run.state);
  return text;
}

}  // namespace starling
