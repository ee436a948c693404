#include "serve/server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "base/counted.h"
#include "base/start_threads.h"

namespace starling {
namespace {

constexpr long kTickNanoseconds = 100'000'000;  // between looks at clients and deadlines
constexpr int kTicksBetweenLooks = 20;          // at the models' directories

// Signals are waited for, not handled: all threads that start later inherit that they are blocked.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int s : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set_, s);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~Signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  // The next signal, or 0 when none comes for a tick.
  int wait() const {
    const timespec tick{0, kTickNanoseconds};
    const int signal = sigtimedwait(&set_, nullptr, &tick);
    return signal > 0 ? signal : 0;
  }

 private:
  sigset_t set_{}, before_{};
};

void say(const std::string& line) { fmt::print(stderr, "{}\n", line); }

void tick(HttpServer& http, const ModelSet& models) {
  http.watch();
  for (const auto& model : models.all()) model->scheduler().expire(serve_seconds());
}

// What else may have changed: the keys, and where the log is.
void read_again(const ServeOptions& options, FileSystem& files, Service& service, AccessLog& log) {
  const auto unless_wrong = [](const std::function<void()>& read) {
    try {
      read();
    } catch (const Error& e) {
      say(fmt::format("stays as it is: {}", e.what()));
    }
  };
  if (!options.api_keys.empty()) unless_wrong([&] { service.set_keys(ApiKeys::load(files, options.api_keys)); });
  unless_wrong([&] { log.reopen(); });
}

// Connections that the process may have open beside its other files; it asks the system for as many as it may have.
unsigned allowed_connections(unsigned wanted) {
  constexpr rlim_t kOtherFiles = 64;  // models that are read, the log, the threads' own
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted + kOtherFiles) return wanted;
  files.rlim_cur = std::min(files.rlim_max, wanted + kOtherFiles);
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur >= wanted + kOtherFiles) return wanted;
  const rlim_t left = files.rlim_cur > 2 * kOtherFiles ? files.rlim_cur - kOtherFiles : files.rlim_cur / 2;
  say(fmt::format("{} connections at most, not {}: the process may have {} files open (ulimit -n)", left, wanted, files.rlim_cur));
  return static_cast<unsigned>(left);
}

// Looks after changed models; `busy` becomes false when it has.
std::thread start_reload(ModelSet& models, bool all, std::atomic<bool>& busy) {
  try {
    return start_thread("reloading", [&, all] {
      for (const std::string& line : models.reload(all)) say(line);
      busy = false;
    });
  } catch (const Error& e) {  // no thread to be had: later
    say(fmt::format("the models stay as they are: {}", e.what()));
    busy = false;
    return {};
  }
}

}  // namespace

void serve(const ServeOptions& options) {
  std::vector<ModelSource> sources;
  for (const std::string& text : options.models) sources.push_back(parse_model_source(text));
  const auto files = real_file_system();
  const Signals signals;
  Metrics metrics;
  AccessLog log(options.access_log);
  ModelSet models(std::move(sources), options.model, *files, metrics);
  ServiceOptions service_options = options.service;
  service_options.limits.keys = !options.api_keys.empty();
  Service service(models, service_options, log, metrics);
  if (!options.api_keys.empty()) service.set_keys(ApiKeys::load(*files, options.api_keys));
  {
    HttpLimits limits = options.http;
    limits.connections = allowed_connections(limits.connections);
    HttpServer http(
        options.listen, limits, [&](auto request, auto reply) { return service.handle(std::move(request), std::move(reply)); },
        [&](int status, const std::string& why) { return service.refuse(status, why); });
    const std::string host = options.listen.substr(0, options.listen.rfind(':'));
    models.load();
    for (const auto& m : models.all())
      say(fmt::format("{} to {}: {}, step {}, {} on {}", m->direction().source, m->direction().target, m->model().description.directory,
                      m->model().description.step, m->model().precision,
                      machine_text(*m->model().backend, m->model().precision == "int8")));
    say(fmt::format("listening at http://{}:{}", host, http.port()));
    std::thread reloading;
    std::atomic<bool> busy{false};
    int ticks = 0;
    bool hangup = false;  // not taken up yet
    for (int signal = 0; signal != SIGTERM && signal != SIGINT; signal = signals.wait()) {
      tick(http, models);
      hangup = hangup || signal == SIGHUP;
      if ((hangup || ++ticks % kTicksBetweenLooks == 0) && !busy.exchange(true)) {
        if (reloading.joinable()) reloading.join();
        reloading = start_reload(models, hangup, busy);
        hangup = false;
      }
      if (signal == SIGHUP) read_again(options, *files, service, log);
    }
    service.drain();
    http.drain();
    if (reloading.joinable()) reloading.join();
    say(fmt::format("stopping: {} under way", counted(http.waiting(), "request")));
    while (http.waiting() > 0) {
      const int signal = signals.wait();
      if (signal == SIGTERM || signal == SIGINT) break;
      tick(http, models);
    }
  }
  models.stop();
  say("stopped");
}

}  // namespace starling
