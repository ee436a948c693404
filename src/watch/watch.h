// `starling watch`: serves the page that shows runs, or writes it to a file.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/http.h"
#include "watch/watched_runs.h"

namespace starling {

struct WatchOptions {
  std::vector<std::string> runs;
  std::string listen = "127.0.0.1:8090";
  std::string prefix;              // of addresses, behind a proxy that does not remove it: "/runs"
  std::vector<std::string> names;  // by which browsers reach the page, beside those of this machine
};

// Returns the page with the runs as they are now, as one file that needs no server. It reads for a minute at most.
std::string report_page(WatchedRuns& runs);

// Answers requests for the page (/), its data (/data.json), metrics for Prometheus (/metrics) and /health.
class WatchPages {
 public:
  // A page at an address of this machine alone (127.0.0.1, localhost, [::1]) is answered to requests that name this machine, or one of the
  // names: a page from elsewhere can give its own name this machine's address, and read what a server here answers to that name. prefix: ""
  // or "/NAME".
  explicit WatchPages(const WatchOptions& options);
  // Thread-safe; the answers wait for nothing.
  HttpResponse answer(const HttpRequest& request) const;
  void show(std::shared_ptr<const RunsView> view);

 private:
  bool is_named(std::string_view host) const;

  std::string prefix_, page_;
  std::vector<std::string> names_;  // empty: any
  mutable std::mutex mutex_;        // guards the pointer
  std::shared_ptr<const RunsView> view_ = std::make_shared<RunsView>();
};

// Serves until SIGTERM, SIGINT or, unless it is ignored, SIGHUP. Throws ConfigError for runs, an address or a prefix that cannot be used.
void watch(const WatchOptions& options);

}  // namespace starling
