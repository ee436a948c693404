#include "serve/server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

#include "base/counted.h"
#include "base/quotes.h"
#include "base/start_threads.h"
#include "http/awaited_signals.h"
#include "serve/directions.h"
#include "serve/file_routes.h"
#include "serve/notify.h"
#include "text/language_match.h"

namespace starling {
namespace {

constexpr long kTickNanoseconds = 100'000'000;  // interval of checks on clients and deadlines
constexpr long kLoadNanoseconds = 10'000'000;   // interval of checks whether the models are loaded
constexpr int64_t kFormBytes = 64 << 10;        // of a form beside the file in it
constexpr int kTicksBetweenLooks = 20;          // ticks between checks of the models' directories

// Writes a line for the operator; never blocks.
using Say = std::function<void(const std::string& line)>;

// Returns how many connections the process may open besides its other files, after raising the system's limit as far as allowed.
unsigned allowed_connections(unsigned wanted, const Say& say) {
  constexpr rlim_t kOtherFiles = 64;  // model files, the log, the threads' own files
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted + kOtherFiles) return wanted;
  files.rlim_cur = std::min(files.rlim_max, wanted + kOtherFiles);
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur >= wanted + kOtherFiles) return wanted;
  const rlim_t left = files.rlim_cur > 2 * kOtherFiles ? files.rlim_cur - kOtherFiles : files.rlim_cur / 2;
  say(fmt::format("at most {} connections instead of {}, because the process may open only {} files (ulimit -n)", left, wanted,
                  files.rlim_cur));
  return static_cast<unsigned>(left);
}

// Reads models on a separate thread, so that signals and clients are served in the meantime.
class Reader {
 public:
  ~Reader() {
    if (thread_.joinable()) thread_.join();
  }
  bool busy() const { return busy_; }
  // Throws ResourceError if the system gives no thread. Must not be called while busy.
  void start(std::function<void()> read) {
    if (thread_.joinable()) thread_.join();
    busy_ = true;
    try {
      thread_ = start_thread("reading models", [this, read = std::move(read)] {
        try {
          read();
        } catch (...) {
          failure_ = std::current_exception();
        }
        busy_ = false;
      });
    } catch (const Error&) {
      busy_ = false;
      throw;
    }
  }
  // Waits for the reading, and rethrows its exception if there was one.
  void finish() {
    if (thread_.joinable()) thread_.join();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  std::atomic<bool> busy_{false};
  std::exception_ptr failure_;
  std::thread thread_;
};

// By default glibc returns memory to the system only above a threshold, which grows to 64 MiB with the largest block that was ever freed.
// It has up to eight heaps per core, and each may keep that much.
void keep_little_freed_memory() {
  constexpr int kKept = 1 << 20;  // bytes
  mallopt(M_MMAP_THRESHOLD, kKept);
  mallopt(M_TRIM_THRESHOLD, kKept);
}

bool ends(int signal) { return signal == SIGTERM || signal == SIGINT; }

// The parts of a running server, and its phases in order.
struct Running {
  const ServeOptions& options;
  const AwaitedSignals& signals;
  FileSystem& files;
  LogWriter& messages;
  AccessLog& log;
  ModelSet& models;
  Service& service;
  HttpServer& http;
  Reader reader;

  // Returns false if a signal ended the server before the models were loaded.
  bool load() {
    reader.start([this] { models.load(); });
    while (reader.busy()) {
      const int signal = signals.wait(kLoadNanoseconds);
      if (ends(signal)) return false;
      if (signal == SIGHUP) read_again();
      http.watch();
    }
    reader.finish();
    require_pivots();
    if (const std::string why = why_no_card(options.model.compute); !why.empty()) say(why);
    for (const auto& m : models.all())
      say(fmt::format("{}, {} on {}; {}", m->text(), m->model().precision,
                      machine_text(*m->model().backend, m->model().precision == "int8"), m->budget().text()));
    if (options.model.on_demand.on) say(models.text());
    say(fmt::format("listening at http://{}:{}", options.listen.substr(0, options.listen.rfind(':')), http.port()));
    tell_service_manager("READY=1");
    return true;
  }
  // Runs until a signal ends the server.
  void look_after() {
    int ticks = 0;
    bool hangup = false;  // a reload is pending
    for (int signal = 0; !ends(signal); signal = signals.wait(kTickNanoseconds)) {
      tick();
      if (signal == SIGHUP) {
        hangup = true;
        read_again();
      }
      if ((hangup || ++ticks % kTicksBetweenLooks == 0) && !reader.busy()) {
        reload(hangup);
        hangup = false;
      }
    }
  }
  // Runs until all pending requests are answered; a second signal ends it at once.
  void drain() {
    tell_service_manager("STOPPING=1");
    service.drain();
    http.drain();
    say(fmt::format("stopping: {} in progress", counted(http.waiting(), "request")));
    while (http.waiting() > 0 && !ends(signals.wait(kTickNanoseconds))) tick();
    const auto reading = [this] { return reader.busy() || models.loading(); };
    for (int i = 0; i < 50 && reading(); ++i) signals.wait(kLoadNanoseconds);  // it may only be checking directories
    if (!reading()) return;
    say("stopped while a model was being read");  // reading cannot be interrupted, and leaves nothing behind
    messages.flush();
    log.flush();
    std::_Exit(0);
  }

 private:
  void say(const std::string& line) const { messages.add(without_controls(line) + "\n"); }
  // A pivot that leads nowhere is probably misspelt.
  void require_pivots() const {
    const std::vector<Direction> directions = models.directions();
    for (const std::string& pivot : options.service.job.pivots) {
      const auto any = [&](std::string Direction::*side) {
        return std::any_of(directions.begin(), directions.end(), [&](const Direction& d) { return same_language(d.*side, pivot); });
      };
      if (!any(&Direction::source) || !any(&Direction::target))
        throw ConfigError(fmt::format("--pivot {}: it must be the target of one model and the source of another; the languages are {}",
                                      pivot, fmt::join(languages_of(directions), ", ")));
      if (reachable(directions, std::span(&pivot, 1)).size() == directions.size())
        say(fmt::format("--pivot {}: not needed, since a model translates each pair directly", pivot));
    }
  }
  void tick() {
    http.watch();
    models.expire(serve_seconds());
    service.expire(serve_seconds());
  }
  void reload(bool all) {
    try {
      reader.start([this, all] {
        if (all) tell_service_manager(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", static_cast<int64_t>(serve_seconds() * 1e6)));
        try {
          for (const std::string& line : models.reload(all)) say(line);
        } catch (const std::exception& e) {
          say(fmt::format("the current models stay in use: {}", e.what()));
        }
        if (all) tell_service_manager("READY=1");
      });
    } catch (const Error& e) {  // no thread available: try later
      say(fmt::format("the current models stay in use: {}", e.what()));
    }
  }
  // Reads the keys again, and reopens the log.
  void read_again() {
    const auto unless_wrong = [this](const std::function<void()>& read) {
      try {
        read();
      } catch (const Error& e) {
        say(fmt::format("not reloaded: {}", e.what()));
      }
    };
    if (!options.api_keys.empty()) unless_wrong([&] { service.set_keys(ApiKeys::load(files, options.api_keys)); });
    unless_wrong([&] { log.reopen(); });
  }
};

}  // namespace

void serve(const ServeOptions& options) {
  keep_little_freed_memory();
  if (options.http.body_total_bytes < options.http.body_bytes)
    throw ConfigError(fmt::format("--max-body-total {}: is less than --max-body {}, the limit for one request; raise it",
                                  options.http.body_total_bytes, options.http.body_bytes));
  if (options.http.body_total_bytes < options.service.files.bytes + kFormBytes)
    throw ConfigError(fmt::format("--max-body-total {}: is less than --max-file {}, the limit for one file, and its form; raise it",
                                  options.http.body_total_bytes, options.service.files.bytes));
  std::vector<ModelSource> sources;
  for (const std::string& text : options.models) sources.push_back(parse_model_source(text));
  for (const std::string& path : options.packages) sources.push_back({.direction = std::nullopt, .path = path, .optional = true});
  const auto files = real_file_system();
  const AwaitedSignals signals;
  Metrics metrics;
  LogWriter messages("messages", metrics, STDERR_FILENO, false);
  AccessLog log(options.access_log, metrics);
  const Say say = [&](const std::string& line) { messages.add(without_controls(line) + "\n"); };
  ModelOptions model_options = options.model;
  model_options.on_demand.say = say;
  ModelSet models(std::move(sources), model_options, *files, metrics);
  ServiceOptions service_options = options.service;
  service_options.limits.keys = !options.api_keys.empty();
  Service service(models, service_options, log, metrics);
  if (!options.api_keys.empty()) service.set_keys(ApiKeys::load(*files, options.api_keys));
  {
    HttpLimits limits = options.http;
    limits.file_bytes = options.service.files.bytes == 0 ? 0 : options.service.files.bytes + kFormBytes;
    limits.file_paths = kFilePaths;
    limits.wait_seconds = options.model.scheduler.wait_seconds;
    limits.connections = allowed_connections(limits.connections, say);
    HttpServer http(
        options.listen, limits, [&](auto request, auto reply) { return service.handle(std::move(request), std::move(reply)); },
        [&](const HttpRequest& request, int status, const std::string& why) { return service.refuse(request, status, why); });
    Running running{options, signals, *files, messages, log, models, service, http, {}};
    if (running.load()) running.look_after();
    running.drain();
  }
  service.stop();
  models.stop();
  say("stopped");
}

}  // namespace starling
