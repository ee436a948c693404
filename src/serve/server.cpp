#include "serve/server.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
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
  try {
    if (!options.api_keys.empty()) service.set_keys(ApiKeys::load(files, options.api_keys));
    log.reopen();
  } catch (const Error& e) {
    say(fmt::format("stays as it is: {}", e.what()));
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
    HttpServer http(
        options.listen, options.http, [&](auto request, auto reply) { return service.handle(std::move(request), std::move(reply)); },
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
    for (int signal = 0; signal != SIGTERM && signal != SIGINT; signal = signals.wait()) {
      tick(http, models);
      if ((signal == SIGHUP || ++ticks % kTicksBetweenLooks == 0) && !busy.exchange(true)) {
        if (reloading.joinable()) reloading.join();
        reloading = start_thread("reloading", [&, all = signal == SIGHUP] {
          for (const std::string& line : models.reload(all)) say(line);
          busy = false;
        });
      }
      if (signal == SIGHUP) read_again(options, *files, service, log);
    }
    service.drain();
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
