// The verb `starling serve`: answers translation clients over HTTP (docs/guides/serving.md).
#include <csignal>

#include "base/byte_size.h"
#include "base/messages.h"
#include "cli/verbs.h"
#include "http/client_address.h"
#include "interop/import_process.h"
#include "interop/recognise.h"
#include "interop/usable_model.h"
#include "program/help.h"
#include "program/search_arguments.h"
#include "serve/model_source.h"
#include "serve/server.h"

namespace starling {
namespace {

struct ServeArguments {
  ServeOptions options;
  SearchArguments search;
  int64_t cache_mib = 64;
  std::string packages, memory;
};

// Models are loaded at the start or, with --packages or --memory, when a request asks for them; those of other programs are imported then.
void serve_models(ServeArguments& a) {
  const std::shared_ptr<FileSystem> files = real_file_system();
  OnDemand& on_demand = a.options.model.on_demand;
  on_demand.on = !a.packages.empty() || !a.memory.empty();
  const auto memory = a.memory.empty() ? std::optional<int64_t>(0) : byte_size(a.memory);
  if (!memory) throw ConfigError(fmt::format("--memory {}: is not an amount of memory; write 500M or 4G", a.memory));
  on_demand.memory = *memory;
  if (!a.packages.empty()) a.options.packages = packages_in(*files, a.packages);
  const Importer importer = [files](const std::string& from, const std::string& output) {
    import_in_process("/proc/self/exe", from, output, import_limits(bytes_of_files(*files, from)));
  };
  on_demand.usable = [files, importer](const std::string& path, const OnDemand::Say& say) {
    return usable_model(*files, path, say, importer);
  };
  on_demand.ready = [files](const std::string& path) { return is_ready(*files, path); };
  on_demand.foreign_languages = [files](const std::string& path) { return named_languages(*files, path); };
  on_demand.state = [files](const std::string& path) { return foreign_state(*files, path); };
  serve(a.options);
}

}  // namespace

void add_serve(CLI::App& app) {
  auto* sub = app.add_subcommand("serve", "answer translation clients over HTTP, as LibreTranslate does (docs/guides/serving.md)");
  auto a = std::make_shared<ServeArguments>();
  ServeOptions& o = a->options;
  CLI::Option* models = sub->add_option("-m,--model", o.models,
                                        "run directory, checkpoint or model directory, or a model of another program that 'import' reads, "
                                        "with its languages: en-de=DIR; may be repeated");
  CLI::Option* packages = sub->add_option("--packages", a->packages,
                                          "folder of Argos packages, as LibreTranslate has it: all are served, and loaded when asked for");
  sub->add_option("--memory", a->memory,
                  "memory for all models together, such as 4G: they are loaded when asked for, and those that were not asked for longest "
                  "are dropped; default with --packages: nine tenths of what the machine or its container has free");
  sub->add_option("--pivot", o.service.job.pivots, "language, such as en, through which to translate where no model does; may be repeated");
  sub->add_option("--listen", o.listen, "HOST:PORT; port 0: a free one; 0.0.0.0:5000 for all networks of this machine")
      ->capture_default_str();
  CLI::Option* keys =
      sub->add_option("--api-keys", o.api_keys, "file of the keys that clients must send: NAME SHA256 [REQUESTS-A-MINUTE] a line");
  sub->add_option("--glossaries", o.service.glossaries, "directory that keeps the glossaries of DeepL's clients; default: in memory only");
  sub->add_option("--access-log", o.access_log, "where a line of JSON for each request goes; - = standard output, '' = nowhere")
      ->capture_default_str();
  sub->add_flag("--log-texts", o.service.log_texts, "the access log has the texts and their translations too");
  sub->add_option("--max-alternatives", o.service.limits.alternatives, "alternative translations that a client may ask for")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  sub->add_option("--max-characters", o.service.limits.characters, "limit for the texts of a request; -1: limited only by --max-body")
      ->check(CLI::Range(int64_t{-1}, int64_t{1} << 30))
      ->capture_default_str();
  sub->add_option("--max-sentences", o.service.job.sentences, "limit for a request")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  sub->add_option("--max-body", o.http.body_bytes, "limit for the body of a request, bytes")
      ->check(CLI::Range(int64_t{1000}, int64_t{1} << 30))
      ->capture_default_str();
  sub->add_option("--max-file", o.service.files.bytes, "limit for a file that is translated, bytes; 0: no files are")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30))
      ->capture_default_str();
  sub->add_option("--keep-files", o.service.files.seconds,
                  "time within which a file must be translated, and for which its translation is kept")
      ->transform(duration_range(1, 86400))
      ->capture_default_str();
  sub->add_option("--max-body-total", o.http.body_total_bytes,
                  "limit for all requests in progress together, bytes; beyond it requests get status 429")
      ->check(CLI::Range(int64_t{1000}, int64_t{1} << 40))
      ->capture_default_str();
  sub->add_option("--max-queue", o.model.scheduler.queue_sentences, "limit on waiting sentences; beyond it requests get status 429")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  sub->add_option("--max-wait", o.model.scheduler.wait_seconds,
                  "limit on the wait for a request's turn, seconds; beyond it requests get status 429")
      ->transform(duration_range(0.001, 86400))
      ->capture_default_str();
  CLI::Option* rate = sub->add_option("--requests-a-minute", o.service.requests_a_minute,
                                      "limit per client address; beyond it requests get status 429; 0: no limit; keys have their own")
                          ->check(real_range(0, 1e9))
                          ->capture_default_str();
  rate->excludes(keys);
  sub->add_option("--trust-proxy", o.http.proxies, "address of a proxy whose X-Forwarded-For is trusted; may be repeated")
      ->check([](const std::string& text) {
        return plain_address(text).empty() ? fmt::format("{} is not an IP address; write it in numbers: 127.0.0.1 or ::1", text)
                                           : std::string();
      });
  sub->add_option("--deadline", o.service.deadline_seconds, "time after which a request gets status 504, seconds")
      ->transform(duration_range(0.1, 86400))
      ->capture_default_str();
  a->search.add_to(*sub, {"fixed-length", "n-best"});
  add_device_options(*sub, o.model.compute);
  CLI::Option* rows =
      sub->add_option("--batch-rows", o.model.scheduler.rows, "hypotheses that a thread extends together")->check(CLI::Range(1, 4096));
  rows->capture_default_str()->group(kFurtherGroup);
  sub->add_option("--cache-mib", a->cache_mib, "memory of each model for translations that may be asked for again, MiB")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str()
      ->group(kFurtherGroup);
  sub->add_option("--max-source-tokens", o.model.max_source_tokens, "limit for a sentence; longer ones are translated in parts")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str()
      ->group(kFurtherGroup);
  sub->add_flag("--whole-batches", o.model.scheduler.whole_batches,
                "sentences do not join those that are being translated: slower, for comparisons")
      ->group(kFurtherGroup);
  sub->add_option("--max-connections", o.http.connections, "limit on connections open at the same time")
      ->check(CLI::Range(4, 100'000))
      ->capture_default_str()
      ->group(kFurtherGroup);
  sub->add_option("--request-seconds", o.http.request_seconds, "time that a client may take to send a request")
      ->transform(duration_range(1, 86400))
      ->capture_default_str()
      ->group(kFurtherGroup);
  sub->callback([a, models, packages] {
    if (models->count() == 0 && packages->count() == 0) throw CLI::RequiredError("--model");
    std::signal(SIGPIPE, SIG_IGN);  // the server outlives the reader of its log
    a->options.model.search = [&search = a->search](SearchOptions options) { return search.apply(options); };
    a->options.model.scheduler.cache_bytes = a->cache_mib << 20;
    a->options.model.alternatives = a->options.service.limits.alternatives;
    for (std::string& proxy : a->options.http.proxies) proxy = plain_address(proxy);
    serve_models(*a);
  });
}

}  // namespace starling
