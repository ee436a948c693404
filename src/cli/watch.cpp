// The verb `starling watch`: shows training runs on a page (docs/guides/watch.md).
#include "watch/watch.h"

#include <algorithm>

#include "cli/verbs.h"
#include "storage/outputs.h"
#include "storage/result_file.h"

namespace starling {
namespace {

struct WatchArguments {
  WatchOptions options;
  std::string report;
};

void run_watch(const WatchArguments& a) {
  if (a.report.empty()) return watch(a.options);
  refuse_run_files({"--once", a.report});
  WatchedRuns runs(a.options.runs);
  const std::string page = report_page(runs);
  ResultFile file(a.report);
  file.stream() << page;
  file.flush(std::count(page.begin(), page.end(), '\n'));
  file.close();
}

}  // namespace

void add_watch(CLI::App& app) {
  auto* sub = app.add_subcommand("watch", "show training runs, live or ended, on a page for a browser (docs/guides/watch.md)");
  auto a = std::make_shared<WatchArguments>();
  WatchOptions& o = a->options;
  sub->add_option("runs", o.runs, "run directories, or directories that have some, such as a race's")->required()->type_name("RUN...");
  CLI::Option* listen = sub->add_option("--listen", o.listen,
                                        "HOST:PORT; port 0: a free one; 0.0.0.0:8090 for all networks of this machine, without a password")
                            ->capture_default_str();
  CLI::Option* prefix =
      sub->add_option("--prefix", o.prefix, "what a proxy puts before the addresses of the page, such as /runs; unless it removes it");
  CLI::Option* name = sub->add_option("--name", o.names,
                                      "another name by which browsers reach the page, such as that of a proxy; may be repeated. With "
                                      "--listen 127.0.0.1, only this machine's own names are answered")
                          ->type_name("HOST")
                          ->expected(1)
                          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  sub->add_option("--once", a->report,
                  "write the page with the runs as they are now to this file, for people without access, and end; - = "
                  "standard output")
      ->excludes(listen)
      ->excludes(prefix)
      ->excludes(name)
      ->type_name("FILE");
  sub->callback([a] { run_watch(*a); });
}

}  // namespace starling
