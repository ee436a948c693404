// `starling watch`: serves the page that shows runs, or writes it to a file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "http/http.h"
#include "watch/watched_runs.h"

namespace starling {

struct WatchOptions {
  std::vector<std::string> runs;
  std::string listen = "127.0.0.1:8090";
  std::string prefix;  // of addresses, behind a proxy that does not remove it: "/runs"
};

// Returns the page with the runs as they are now, as one file that needs no server.
std::string report_page(WatchedRuns& runs);

// Answers requests for the page (/), its data (/data.json), metrics for Prometheus (/metrics) and /health.
class WatchPages {
 public:
  // The runs must outlive this. prefix: "" or "/NAME".
  WatchPages(WatchedRuns& runs, std::string prefix);
  ~WatchPages();
  // Thread-safe.
  HttpResponse answer(const HttpRequest& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Serves until SIGTERM, SIGINT or, unless it is ignored, SIGHUP. Throws ConfigError for runs, an address or a prefix that cannot be used.
void watch(const WatchOptions& options);

}  // namespace starling
