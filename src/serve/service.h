// The server without its sockets: dispatches requests to their handlers and applies keys, limits, deadlines, metrics and the log.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "http/api_keys.h"
#include "http/http.h"
#include "serve/access_log.h"
#include "serve/file_jobs.h"
#include "serve/glossaries.h"
#include "serve/libretranslate.h"
#include "serve/translation_job.h"

namespace starling {

// The page may only use what it contains and query its own server, and it must not be embedded in other pages.
constexpr const char* kPagePolicy =
    "default-src 'none'; connect-src 'self'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

struct ServiceOptions {
  LibreTranslateLimits limits;
  JobOptions job;
  FileLimits files;
  double deadline_seconds = 60;
  double requests_a_minute = 0;  // per address, if there are no keys; 0: no limit
  bool log_texts = false;
  std::string glossaries;  // directory of DeepL's; "": in memory
};

class Service {
 public:
  // All arguments must outlive the service and its pending answers.
  Service(ModelSet& models, const ServiceOptions& options, AccessLog& log, Metrics& metrics)
      : models_(models),
        options_(options),
        log_(log),
        metrics_(metrics),
        glossaries_(options.glossaries),
        files_(models, options.job, options.files) {}

  // Answers a request, possibly later: see HttpServer::Handler.
  HttpServer::Cancel handle(std::shared_ptr<const HttpRequest> request, HttpServer::Reply reply);
  // Returns the answer to a request that was refused before it got here; it is counted and logged like any other.
  HttpResponse refuse(const HttpRequest& request, int status, const std::string& why);

  // From now on new translations are refused with 503, and so are files that wait.
  void drain() {
    draining_ = true;
    files_.drain(options_.deadline_seconds);
  }
  // Forgets translated files that are too old; call it a few times per second.
  void expire(double now) { files_.expire(now); }
  // Cancels the translations of files; call it before the models are stopped.
  void stop() { files_.stop(); }
  bool ready() const { return models_.loaded() && !draining_; }
  // Sets the keys that may translate; without keys, everybody may.
  void set_keys(ApiKeys keys);

 private:
  struct Exchange;
  using Ended = std::shared_ptr<Exchange>;
  std::optional<HttpResponse> at_once(Exchange& exchange);
  HttpResponse metrics();
  HttpResponse detect(Exchange& exchange);
  HttpResponse usage(Exchange& exchange);
  HttpResponse glossaries(Exchange& exchange);
  void require_ready() const;
  HttpServer::Cancel translate(const Ended& exchange);
  HttpServer::Cancel translate_file(const Ended& exchange);
  HttpResponse upload(Exchange& exchange);
  void count_characters(const std::string& key, int64_t characters);
  void admit(Exchange& exchange, const std::string& key);

  ModelSet& models_;
  const ServiceOptions options_;
  AccessLog& log_;
  Metrics& metrics_;
  Glossaries glossaries_;
  std::atomic<bool> draining_{false};
  std::mutex keys_mutex_;
  std::shared_ptr<const ApiKeys> keys_;
  RateLimits rates_;
  std::map<std::string, int64_t> characters_;  // characters translated, by name of the key; guarded by keys_mutex_
  FileJobs files_;                             // the last: its threads use what is above
};

}  // namespace starling
