#include "watch/watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <thread>

#include "base/counted.h"
#include "base/error.h"
#include "base/messages.h"
#include "base/quotes.h"
#include "base/start_threads.h"
#include "http/awaited_signals.h"

namespace starling {

extern const std::string_view kWatchPage;  // src/watch/page, embedded by the build

namespace {

using Clock = std::chrono::steady_clock;

constexpr long kTickNanoseconds = 100'000'000;  // interval of checks on clients
constexpr std::chrono::seconds kReport{60};     // for which a report reads at most
constexpr const char* kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'";

// The page of a cleaning has its scripts, but nothing of this server's: it may be anybody's.
constexpr const char* kCleaningPolicy =
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
constexpr std::string_view kCleaningPath = "/cleaning/";

HttpResponse plain(int status, const std::string& text) { return {status, text + "\n", "text/plain; charset=utf-8", {}}; }

// The host of "HOST:PORT" or "HOST", in lower case.
std::string host_of(std::string_view address) {
  const size_t colon = address.rfind(':'), bracket = address.rfind(']');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) address = address.substr(0, colon);
  std::string host(address);
  std::transform(host.begin(), host.end(), host.begin(), [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return host;
}

// Looks at the runs again and again in a thread of its own, and shows what it has seen. A file system that does not answer holds up this
// thread alone.
class Refreshing {
 public:
  Refreshing(WatchedRuns& runs, WatchPages& pages)
      : runs_(runs), pages_(pages), thread_(start_thread("reading the files of runs", [this] { work(); })) {}
  ~Refreshing() {
    std::unique_lock lock(mutex_);
    end_ = true;
    changed_.notify_all();
    if (changed_.wait_for(lock, kEnd, [this] { return ended_; })) {
      lock.unlock();
      thread_.join();
      return;
    }
    std::fflush(nullptr);
    _exit(0);  // the thread hangs in the kernel; nothing else is left to do
  }
  Refreshing(const Refreshing&) = delete;
  Refreshing& operator=(const Refreshing&) = delete;
  // Waits until everything has been looked at once, but not long.
  void wait_for_first() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kEnd, [this] { return shown_; });
  }

 private:
  static constexpr std::chrono::seconds kEnd{1};
  static constexpr std::chrono::milliseconds kLook{500}, kPause{500};  // a look at the runs, and before the next one
  static constexpr uint64_t kBytes = 64 << 20;                         // of a look

  void work() {
    std::unique_lock lock(mutex_);
    while (!end_) {
      lock.unlock();
      Look look{Clock::now() + kLook, kBytes, &end_};
      runs_.refresh(look);
      pages_.show(runs_.view());
      lock.lock();
      shown_ = true;
      changed_.notify_all();
      changed_.wait_for(lock, kPause, [this] { return end_.load(); });
    }
    ended_ = true;
    changed_.notify_all();
  }

  WatchedRuns& runs_;
  WatchPages& pages_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> end_{false};
  bool ended_ = false, shown_ = false;
  std::thread thread_;
};

}  // namespace

std::string report_page(WatchedRuns& runs) {
  const auto until = Clock::now() + kReport;
  do {
    Look look{until};
    runs.refresh(look);
  } while (runs.more() && Clock::now() < until);
  if (runs.more()) tell("warning: the files of the runs are too long to be read within a minute; the page has their beginnings\n");
  return with_page_data(kWatchPage, runs.view()->changes(0));
}

WatchPages::WatchPages(const WatchOptions& options) : prefix_(options.prefix), page_(with_page_data(kWatchPage, "")) {
  while (prefix_.ends_with('/')) prefix_.pop_back();
  if (!prefix_.empty() && !prefix_.starts_with('/'))
    throw ConfigError(fmt::format("--prefix {}: must begin with a slash, such as /runs", prefix_));
  const std::string here = host_of(options.listen);
  if (here != "localhost" && here != "[::1]" && !here.starts_with("127.")) return;
  names_ = {"127.0.0.1", "localhost", "[::1]", here};
  for (const std::string& name : options.names) names_.push_back(host_of(name));
}

bool WatchPages::is_named(std::string_view host) const {
  return names_.empty() || host.empty() || std::find(names_.begin(), names_.end(), host_of(host)) != names_.end();
}

void WatchPages::show(std::shared_ptr<const RunsView> view) {
  const std::lock_guard lock(mutex_);
  view_.swap(view);
}

HttpResponse WatchPages::answer(const HttpRequest& request) const {
  if (!is_named(request.header("host")))
    return plain(421, "this server answers as 127.0.0.1, localhost and [::1]; allow another name by --name when it is started");
  if (request.method != "GET" && request.method != "HEAD") return plain(405, "only GET is answered here");
  std::string path = request.path;
  if (!prefix_.empty() && path == prefix_) return {301, "", "text/plain", {{"Location", prefix_ + "/"}}};
  if (!prefix_.empty() && path.starts_with(prefix_ + "/")) path.erase(0, prefix_.size());
  if (path == "/")
    return {200, page_, "text/html; charset=utf-8", {{"Content-Security-Policy", kPolicy}, {"X-Content-Type-Options", "nosniff"}}};
  if (path == "/health") return plain(200, "ok");
  std::unique_lock lock(mutex_);
  const std::shared_ptr<const RunsView> view = view_;
  lock.unlock();
  if (path == "/data.json") {
    int64_t since = 0;
    for (const auto& [name, value] : request.fields)
      if (name == "since") std::from_chars(value.data(), value.data() + value.size(), since);
    return {200, view->changes(since), "application/json", {{"Cache-Control", "no-store"}}};
  }
  if (path.starts_with(kCleaningPath)) {
    size_t number = 0;
    const char *begin = path.data() + kCleaningPath.size(), *end = path.data() + path.size();
    const auto read = std::from_chars(begin, end, number);
    const auto page = read.ec == std::errc() && read.ptr == end ? view->cleaning(number) : nullptr;
    if (!page) return plain(404, "there is no such cleaning, or its page cannot be read");
    return {200,
            *page,
            "text/html; charset=utf-8",
            {{"Content-Security-Policy", kCleaningPolicy}, {"X-Content-Type-Options", "nosniff"}, {"Cache-Control", "no-store"}}};
  }
  if (path == "/metrics") return {200, view->metrics(), "text/plain; version=0.0.4; charset=utf-8", {}};
  return plain(404, "there is the page at /, its data at /data.json, and metrics for Prometheus at /metrics");
}

void watch(const WatchOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  WatchedRuns runs(options.runs);
  WatchPages pages(options);
  std::string what = runs.size() > 0 || runs.cleanings() == 0 ? counted(runs.size(), "run") : "";
  if (runs.cleanings() > 0) what += (what.empty() ? "" : " and ") + counted(runs.cleanings(), "cleaning");
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);  // ignored under nohup; a blocked signal would be seen all the same
  const bool outlives_terminal = hangup.sa_handler == SIG_IGN;
  const AwaitedSignals signals;
  Refreshing refreshing(runs, pages);
  refreshing.wait_for_first();
  HttpServer http(
      options.listen, {},
      [&](const std::shared_ptr<const HttpRequest>& request, const HttpServer::Reply& reply) {
        reply(pages.answer(*request));
        return HttpServer::Cancel();
      },
      [](const HttpRequest&, int status, const std::string& why) { return plain(status, why); });
  tell("watching {} at http://{}:{}{}/; Ctrl-C ends it\n", what, options.listen.substr(0, options.listen.rfind(':')), http.port(),
       options.prefix);
  for (int signal = 0; signal != SIGTERM && signal != SIGINT && (signal != SIGHUP || outlives_terminal);
       signal = signals.wait(kTickNanoseconds))
    http.watch();
}

}  // namespace starling
