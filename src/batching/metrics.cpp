#include "batching/metrics.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace starling {
namespace {

enum class Kind { counter, gauge, histogram };

struct Family {
  const char* name;
  Kind kind;
  const char* help;
  std::vector<double> buckets;  // upper bounds of a histogram's buckets
};

const std::vector<Family>& families() {
  static const std::vector<double> kSeconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
  static const std::vector<Family> kFamilies{
      {"starling_requests_total", Kind::counter, "Requests answered, by API and HTTP status.", {}},
      {"starling_request_duration_seconds", Kind::histogram, "Time from receiving the whole request to answering it, by API.", kSeconds},
      {"starling_queue_wait_seconds", Kind::histogram, "Time that requests wait until their translation begins.", kSeconds},
      {"starling_queue_sentences", Kind::gauge, "Sentences waiting in the queue.", {}},
      {"starling_batch_rows", Kind::histogram, "Hypotheses that a step extends together.", {1, 2, 4, 8, 16, 32, 64, 128, 256}},
      {"starling_sentences_total", Kind::counter, "Sentences translated.", {}},
      {"starling_tokens_total", Kind::counter, "Tokens read (side=source) and written (side=target).", {}},
      {"starling_rejected_total", Kind::counter, "Requests refused, by reason.", {}},
      {"starling_cancelled_total", Kind::counter, "Requests whose client disconnected before the answer was ready.", {}},
      {"starling_cache_hits_total", Kind::counter, "Sentences whose translation was in the cache.", {}},
      {"starling_cache_bytes", Kind::gauge, "Memory used by cached translations.", {}},
      {"starling_log_dropped_total", Kind::counter, "Log lines lost because the reader did not keep up or the disk was full.", {}},
      {"starling_reloads_total", Kind::counter, "Attempts to load a changed model, by result.", {}},
      {"starling_ready", Kind::gauge, "1 when translating; 0 while loading or draining.", {}},
      {"starling_model_info", Kind::gauge, "1 for each model that is loaded.", {}},
      {"starling_models_loaded", Kind::gauge, "Models that are loaded.", {}},
      {"starling_models_bytes", Kind::gauge, "Memory of loaded models: their weights, and the most that searches and caches may take.", {}},
      {"starling_model_loads_total", Kind::counter, "Models loaded because a request asked for them, by result.", {}},
      {"starling_model_drops_total", Kind::counter, "Models dropped because others needed their memory.", {}},
  };
  return kFamilies;
}

const Family& family(std::string_view name) {
  for (const Family& f : families())
    if (f.name == name) return f;
  throw InternalError(fmt::format("no metric is called {}", name));
}

const char* type_text(Kind kind) { return kind == Kind::counter ? "counter" : kind == Kind::gauge ? "gauge" : "histogram"; }

void head(std::string& out, const char* name, const char* type, const char* help) {
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

std::string line(std::string_view name, const std::string& labels, double value) {
  return labels.empty() ? fmt::format("{} {}\n", name, value) : fmt::format("{}{{{}}} {}\n", name, labels, value);
}

// The process metrics under their conventional names.
std::string process_text() {
  std::string out;
  const auto add = [&](const char* name, const char* type, const char* help, double value) {
    head(out, name, type, help);
    out += line(name, "", value);
  };
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  add("process_cpu_seconds_total", "counter", "Processor time taken.", seconds(used.ru_utime) + seconds(used.ru_stime));
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  add("process_resident_memory_bytes", "gauge", "Memory in use.", static_cast<double>(resident * sysconf(_SC_PAGESIZE)));
  std::error_code none;
  const auto open = std::distance(std::filesystem::directory_iterator("/proc/self/fd", none), std::filesystem::directory_iterator());
  add("process_open_fds", "gauge", "Open files and connections.", static_cast<double>(open));
  return out;
}

}  // namespace

std::string label_value(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

void Metrics::count(std::string_view name, const std::string& labels, double by) {
  CHECK(family(name).kind == Kind::counter, "{} is not a counter", name);
  const std::lock_guard lock(mutex_);
  families_[std::string(name)][labels].value += by;
}

void Metrics::observe(std::string_view name, const std::string& labels, double value) {
  const Family& f = family(name);
  CHECK(f.kind == Kind::histogram, "{} is not a histogram", name);
  const std::lock_guard lock(mutex_);
  Series& series = families_[std::string(name)][labels];
  series.counts.resize(f.buckets.size() + 1);
  ++series.counts[static_cast<size_t>(std::lower_bound(f.buckets.begin(), f.buckets.end(), value) - f.buckets.begin())];
  series.value += value;
}

void Metrics::set(std::string_view name, const std::string& labels, double value) {
  CHECK(family(name).kind == Kind::gauge, "{} is not a gauge", name);
  const std::lock_guard lock(mutex_);
  families_[std::string(name)][labels].value = value;
}

void Metrics::clear(std::string_view name) {
  const std::lock_guard lock(mutex_);
  families_.erase(std::string(name));
}

double Metrics::value(std::string_view name, const std::string& labels) const {
  const std::lock_guard lock(mutex_);
  const auto all = families_.find(name);
  if (all == families_.end()) return 0;
  const auto one = all->second.find(labels);
  return one == all->second.end() ? 0 : one->second.value;
}

int64_t Metrics::observed(std::string_view name, const std::string& labels) const {
  const std::lock_guard lock(mutex_);
  const auto all = families_.find(name);
  if (all == families_.end()) return 0;
  const auto one = all->second.find(labels);
  int64_t sum = 0;
  if (one != all->second.end())
    for (const int64_t n : one->second.counts) sum += n;
  return sum;
}

std::string Metrics::text() const {
  const std::string process = process_text();  // slow, so done before taking the lock
  std::string out;
  const std::lock_guard lock(mutex_);
  for (const Family& f : families()) {
    head(out, f.name, type_text(f.kind), f.help);
    const auto all = families_.find(f.name);
    if (all == families_.end()) continue;
    for (const auto& [labels, series] : all->second) {
      if (f.kind != Kind::histogram) {
        out += line(f.name, labels, series.value);
        continue;
      }
      const std::string before = labels.empty() ? "" : labels + ",";
      int64_t sum = 0;
      for (size_t i = 0; i < series.counts.size(); ++i) {
        sum += series.counts[i];
        const std::string bound = i < f.buckets.size() ? fmt::format("{}", f.buckets[i]) : "+Inf";
        out += line(fmt::format("{}_bucket", f.name), fmt::format("{}le=\"{}\"", before, bound), static_cast<double>(sum));
      }
      out += line(fmt::format("{}_sum", f.name), labels, series.value) +
             line(fmt::format("{}_count", f.name), labels, static_cast<double>(sum));
    }
  }
  return out + process;
}

}  // namespace starling
