#include "watch/watched_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/iso_time.h"
#include "base/quotes.h"
#include "base/task_progress.h"
#include "base/version.h"
#include "progress/statistics.h"
#include "storage/publication.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

constexpr int kDepth = 3;           // levels below a directory in which runs are looked for
constexpr double kFindSeconds = 5;  // between two looks for new runs
constexpr size_t kMostRuns = 200;
constexpr const char* kCleaned = "cleaned";              // where a run has its text, if it is cleaned before training
constexpr uint64_t kMostPageBytes = uint64_t{96} << 20;  // of all pages of cleanings
constexpr size_t kMostEntries = 100'000;                 // in all directories that are looked at

double now_seconds() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// Returns whether a run has begun there; its log exists before its first record.
bool is_run(const fs::path& path) {
  return is_regular_file((path / "events.jsonl").string()) || is_regular_file((path / "train.log").string());
}

struct Found {
  std::vector<fs::path> runs, cleanings;
};

// Adds the runs and cleanings below a path. entries: that may still be looked at.
void find_runs(const fs::path& path, int depth, const Look& look, size_t& entries, Found& found) {
  if (is_run(path)) {
    found.runs.push_back(path);
    for (const fs::path& cleaned : {path / kCleaned, aside_of(path / kCleaned)})
      if (is_cleaning(cleaned)) found.cleanings.push_back(cleaned);
    return;
  }
  if (is_cleaning(path)) return found.cleanings.push_back(path);
  if (depth == 0) return;
  std::error_code error;
  std::vector<fs::path> below;
  for (fs::directory_iterator at(path, fs::directory_options::skip_permission_denied, error), end; !error && at != end;
       at.increment(error)) {
    if (entries == 0 || look.over()) break;
    --entries;
    std::error_code unknown;
    if (at->is_directory(unknown) && !at->is_symlink(unknown)) below.push_back(at->path());
  }
  std::sort(below.begin(), below.end());
  for (const fs::path& each : below) find_runs(each, depth - 1, look, entries, found);
}

// The shortest ends of the paths that tell them apart: "a/run" and "b/run", but "small" and "large" of "out/small" and "out/large".
std::vector<std::string> short_names(const std::vector<fs::path>& paths) {
  const auto ending = [](const fs::path& path, size_t parts) {
    const std::vector<fs::path> all(path.begin(), path.end());
    fs::path end;
    for (size_t i = all.size() - std::min(parts, all.size()); i < all.size(); ++i) end /= all[i];
    return printable(end.string());
  };
  std::vector<std::string> names;
  for (size_t parts = 1; parts <= 40; ++parts) {
    names.clear();
    for (const fs::path& path : paths) names.push_back(ending(path, parts));
    if (std::set<std::string>(names.begin(), names.end()).size() == names.size()) return names;
  }
  for (size_t i = 0; i < names.size(); ++i) names[i] = fmt::format("{} ({})", names[i], i + 1);  // too long to be told apart
  return names;
}

std::vector<fs::path> first_different(const std::vector<fs::path>& paths) {
  std::vector<fs::path> different;
  for (const fs::path& path : paths)
    if (std::find(different.begin(), different.end(), path) == different.end() && different.size() < kMostRuns) different.push_back(path);
  return different;
}

// Texts of a run may have any bytes.
std::string json_text(const nlohmann::json& json) { return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

std::string label(const std::string& text) {
  const std::string name = printable(text);
  std::string escaped;
  for (const char c : name) escaped += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
  return escaped;
}

}  // namespace

WatchedRuns::WatchedRuns(std::vector<std::string> paths) : paths_(std::move(paths)) {
  for (const std::string& path : paths_) {
    std::error_code error;
    if (fs::is_directory(aside_of(fs::path(path)), error)) continue;  // it is being made
    if (!fs::exists(path, error)) throw ConfigError(fmt::format("{}: does not exist; name the directories of runs (train.output)", path));
    if (!fs::is_directory(path, error)) throw ConfigError(fmt::format("{}: is not a directory; name the directories of runs", path));
  }
  find({});
  if (runs_.empty() && cleanings_.empty())
    throw ConfigError(
        fmt::format("{}: there is no run in it (no events.jsonl, up to {} levels below); name the directory of a run, "
                    "which train.output names, or of a cleaning",
                    paths_[0], kDepth));
}

void WatchedRuns::find(const Look& look) {
  found_at_ = steady_seconds();
  Found found;
  size_t entries = kMostEntries;
  for (const std::string& path : paths_) {
    fs::path plain = fs::path(path).lexically_normal();
    if (!plain.has_filename()) plain = plain.parent_path();
    if (plain == "." || plain == "..") plain = fs::absolute(plain).lexically_normal();
    if (!plain.has_filename()) plain = plain.parent_path();
    find_runs(plain, kDepth, look, entries, found);
    if (const fs::path aside = aside_of(plain); is_cleaning(aside)) found.cleanings.push_back(aside);
  }
  if (look.over()) return;  // what was found so far is not all
  take_cleanings(found.cleanings);
  const std::vector<fs::path> different = first_different(found.runs);
  bool same = different.size() == runs_.size();
  for (size_t i = 0; same && i < runs_.size(); ++i) same = runs_[i].record.directory() == different[i].string();
  if (same) return;
  const std::vector<std::string> names = short_names(different);
  ++revision_;
  std::vector<Watched> runs;
  for (size_t i = 0; i < different.size(); ++i) {
    const auto known = std::find_if(runs_.begin(), runs_.end(), [&](const Watched& run) { return run.record.directory() == different[i]; });
    if (known != runs_.end())
      runs.push_back({names[i], std::move(known->record), revision_, known->state, nullptr});
    else
      runs.push_back({names[i], RunRecord(different[i].string()), revision_, "", nullptr});
  }
  runs_ = std::move(runs);
}

void WatchedRuns::take_cleanings(const std::vector<fs::path>& found) {
  std::vector<WatchedCleaning> cleanings;
  for (const fs::path& path : first_different(found)) {
    const auto known = std::find_if(cleanings_.begin(), cleanings_.end(), [&](const auto& c) { return c.directory() == path; });
    cleanings.push_back(known != cleanings_.end() ? std::move(*known) : WatchedCleaning(path.string()));
  }
  cleanings_ = std::move(cleanings);
}

void WatchedRuns::refresh(Look& look) {
  if (steady_seconds() - found_at_ > kFindSeconds) find(look);
  const double now = now_seconds();
  for (size_t i = 0; i < runs_.size(); ++i) {
    Watched& run = runs_[(first_ + i) % runs_.size()];
    Look share = look.share(runs_.size() - i);
    const uint64_t given = share.bytes;
    const bool changed = run.record.refresh(share);
    look.bytes -= std::min(look.bytes, given - share.bytes);
    const std::string state = run.record.state(now);
    if (changed || state != run.state) {
      run.revision = ++revision_;
      run.json = nullptr;
    }
    run.state = state;
  }
  ++first_;
  uint64_t most = kMostPageBytes;
  for (size_t i = 0; i < cleanings_.size() && !look.over(); ++i) {
    WatchedCleaning& cleaning = cleanings_[(first_ + i) % cleanings_.size()];
    cleaning.refresh(look, most);
    if (cleaning.page()) most -= std::min<uint64_t>(most, cleaning.page()->size());
  }
  make_view(now);
}

bool WatchedRuns::more() const {
  return std::any_of(runs_.begin(), runs_.end(), [](const Watched& run) { return run.record.more(); });
}

void WatchedRuns::make_view(double now) {
  auto view = std::make_shared<RunsView>();
  for (Watched& run : runs_) {
    if (!run.json) {
      nlohmann::json json = run.record.json(now);
      json["name"] = run.name;
      run.json = std::make_shared<std::string>(json_text(json));
    }
    view->runs_.push_back({json_text(run.name), run.revision, run.json});
  }
  std::vector<fs::path> places;
  for (const WatchedCleaning& cleaning : cleanings_) places.emplace_back(cleaning.directory());
  for (fs::path& place : places) {
    std::string name = place.filename().string();
    if (name.starts_with(kAsidePrefix)) place.replace_filename(name = name.substr(kAsidePrefix.size()));
    if (name == kCleaned && is_run(place.parent_path())) place = place.parent_path();
  }
  const std::vector<std::string> names = short_names(places);
  for (size_t i = 0; i < cleanings_.size(); ++i)
    view->cleanings_.push_back({json_text({{"name", names[i]}, {"under_way", cleanings_[i].under_way()}}), cleanings_[i].page()});
  view->revision_ = revision_;
  view->now_ = iso_time(std::chrono::system_clock::now());
  view->metrics_ = metrics();
  view_ = std::move(view);
}

std::string RunsView::changes(int64_t since) const {
  std::vector<std::string> names;
  std::vector<std::string_view> runs;
  for (const Run& run : runs_) {
    names.push_back(run.name);
    if (run.revision > since || since > revision_) runs.emplace_back(*run.json);  // a later revision is of a server before this one
  }
  std::vector<std::string_view> cleanings;
  for (const Cleaning& cleaning : cleanings_) cleanings.emplace_back(cleaning.json);
  return fmt::format(R"({{"revision":{},"version":{},"now":"{}","panels":{},"names":[{}],"cleanings":[{}],"runs":[{}]}})", revision_,
                     json_text(kVersion), now_, json_text(panels()), fmt::join(names, ","), fmt::join(cleanings, ","),
                     fmt::join(runs, ","));
}

std::string WatchedRuns::metrics() const {
  std::string text;
  for (const Statistic& s : kStatistics) {
    if (!s.gauge) continue;
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", s.gauge, s.help);
    for (const Watched& run : runs_)
      if (const auto value = run.record.last_report().find(s.key); value != run.record.last_report().end() && value->is_number())
        text += fmt::format("{}{{run=\"{}\"}} {}\n", s.gauge, label(run.name), value->get<double>());
  }
  std::string by_text;
  text += "# HELP starling_run_score Scores of the last validation.\n# TYPE starling_run_score gauge\n";
  for (const Watched& run : runs_)
    for (const auto& [of, metric, score] : run.record.validations().newest()) {
      const std::string labels = fmt::format("run=\"{}\",metric=\"{}\"", label(run.name), label(metric));
      if (of.empty())
        text += fmt::format("starling_run_score{{{}}} {}\n", labels, score);
      else
        by_text += fmt::format("starling_run_text_score{{{},text=\"{}\"}} {}\n", labels, label(of), score);
    }
  if (!by_text.empty())
    text += "# HELP starling_run_text_score Scores of the last validation, by text.\n# TYPE starling_run_text_score gauge\n" + by_text;
  text += "# HELP starling_run_state 1 for the state of each run.\n# TYPE starling_run_state gauge\n";
  for (const Watched& run : runs_) text += fmt::format("starling_run_state{{run=\"{}\",state=\"{}\"}} 1\n", label(run.name), run.state);
  return text;
}

}  // namespace starling
