#include "watch/watch.h"

#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <mutex>
#include <string_view>

#include "base/counted.h"
#include "base/error.h"
#include "base/messages.h"
#include "http/awaited_signals.h"

namespace starling {

extern const std::string_view kWatchPage;  // src/watch/page, embedded by the build

namespace {

constexpr long kTickNanoseconds = 100'000'000;  // interval of checks on clients
constexpr std::string_view kReportMark = "/*REPORT*/";
constexpr const char* kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'";

// Texts of a run may have any bytes. Within a page no "</script>" may appear.
std::string json_text(const nlohmann::json& json, bool in_page) {
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (!in_page) return text;
  std::string escaped;
  for (const char c : text) escaped += c == '<' ? "\\u003c" : std::string(1, c);
  return escaped;
}

HttpResponse plain(int status, const std::string& text) { return {status, text + "\n", "text/plain; charset=utf-8", {}}; }

}  // namespace

std::string report_page(WatchedRuns& runs) {
  runs.refresh();
  std::string page(kWatchPage);
  const size_t at = page.find(kReportMark);
  return page.replace(at, kReportMark.size(), json_text(runs.changes(0), true));
}

struct WatchPages::State {
  WatchedRuns& runs;
  std::string prefix;
  std::string page;
  std::mutex mutex;  // guards the runs
};

WatchPages::WatchPages(WatchedRuns& runs, std::string prefix) : state_(new State{runs, std::move(prefix), std::string(kWatchPage), {}}) {
  while (state_->prefix.ends_with('/')) state_->prefix.pop_back();
  if (!state_->prefix.empty() && !state_->prefix.starts_with('/'))
    throw ConfigError(fmt::format("--prefix {}: must begin with a slash, such as /runs", state_->prefix));
  state_->page.replace(state_->page.find(kReportMark), kReportMark.size(), "");
}
WatchPages::~WatchPages() = default;

HttpResponse WatchPages::answer(const HttpRequest& request) {
  State& s = *state_;
  if (request.method != "GET" && request.method != "HEAD") return plain(405, "only GET is answered here");
  std::string path = request.path;
  if (!s.prefix.empty() && path == s.prefix) return {301, "", "text/plain", {{"Location", s.prefix + "/"}}};
  if (!s.prefix.empty() && path.starts_with(s.prefix + "/")) path.erase(0, s.prefix.size());
  if (path == "/")
    return {200, s.page, "text/html; charset=utf-8", {{"Content-Security-Policy", kPolicy}, {"X-Content-Type-Options", "nosniff"}}};
  if (path == "/health") return plain(200, "ok");
  const std::lock_guard lock(s.mutex);
  if (path == "/data.json") {
    int64_t since = 0;
    for (const auto& [name, value] : request.fields)
      if (name == "since") std::from_chars(value.data(), value.data() + value.size(), since);
    s.runs.refresh();
    return {200, json_text(s.runs.changes(since), false), "application/json", {{"Cache-Control", "no-store"}}};
  }
  if (path == "/metrics") {
    s.runs.refresh();
    return {200, s.runs.metrics(), "text/plain; version=0.0.4; charset=utf-8", {}};
  }
  return plain(404, "there is the page at /, its data at /data.json, and metrics for Prometheus at /metrics");
}

void watch(const WatchOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  WatchedRuns runs(options.runs);
  WatchPages pages(runs, options.prefix);
  const size_t count = runs.size();
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);  // ignored under nohup; a blocked signal would be seen all the same
  const bool outlives_terminal = hangup.sa_handler == SIG_IGN;
  const AwaitedSignals signals;
  HttpServer http(
      options.listen, {},
      [&](const std::shared_ptr<const HttpRequest>& request, const HttpServer::Reply& reply) {
        reply(pages.answer(*request));
        return HttpServer::Cancel();
      },
      [](const HttpRequest&, int status, const std::string& why) { return plain(status, why); });
  tell("watching {} at http://{}:{}{}/; Ctrl-C ends it\n", counted(static_cast<int64_t>(count), "run"),
       options.listen.substr(0, options.listen.rfind(':')), http.port(), options.prefix);
  for (int signal = 0; signal != SIGTERM && signal != SIGINT && (signal != SIGHUP || outlives_terminal);
       signal = signals.wait(kTickNanoseconds))
    http.watch();
}

}  // namespace starling
