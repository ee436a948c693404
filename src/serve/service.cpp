#include "serve/service.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "formats/file_format.h"
#include "http/client_address.h"
#include "http/http_stream.h"
#include "serve/deepl.h"
#include "serve/directions.h"
#include "serve/file_routes.h"

namespace starling {

extern const std::string_view kPage, kDocsPage, kOpenApi;  // src/serve/page, embedded by the build

namespace {

enum class Page {
  translate,
  detect,
  languages,
  settings,
  health,
  ready,
  metrics,
  page,
  openapi,
  docs,
  suggest,
  translate_file,
  download_file,
  deepl_upload,
  deepl_document,
  deepl_translate,
  deepl_languages,
  deepl_usage,
  deepl_glossary_pairs,
  deepl_glossaries
};

struct Endpoint {
  const char* path;
  Page page;
  const char* api;  // label in the metrics
  bool get, post;
};
constexpr Endpoint kEndpoints[] = {
    {"/translate", Page::translate, "translate", true, true},
    {"/detect", Page::detect, "detect", true, true},
    {"/languages", Page::languages, "languages", true, false},
    {"/frontend/settings", Page::settings, "settings", true, false},
    {"/health", Page::health, "health", true, false},
    {"/ready", Page::ready, "ready", true, false},
    {"/metrics", Page::metrics, "metrics", true, false},
    {"/", Page::page, "page", true, false},
    {"/openapi.json", Page::openapi, "openapi", true, false},
    {"/spec", Page::openapi, "openapi", true, false},
    {"/docs", Page::docs, "docs", true, false},
    {"/docs/", Page::docs, "docs", true, false},
    {"/suggest", Page::suggest, "suggest", false, true},
    {"/translate_file", Page::translate_file, "translate_file", false, true},
    {"/download_file/*", Page::download_file, "download_file", true, false},
    {"/v2/document", Page::deepl_upload, "deepl_document", false, true},
    {"/v2/document/*", Page::deepl_document, "deepl_document", true, true},
    {"/v2/translate", Page::deepl_translate, "deepl_translate", false, true},
    {"/v2/languages", Page::deepl_languages, "deepl_languages", true, true},
    {"/v2/usage", Page::deepl_usage, "deepl_usage", true, true},
    {"/v2/glossary-language-pairs", Page::deepl_glossary_pairs, "deepl_glossary_pairs", true, false},
    {"/v2/glossaries", Page::deepl_glossaries, "deepl_glossaries", true, true},
    {"/v2/glossaries/*", Page::deepl_glossaries, "deepl_glossaries", true, true},
};

const Endpoint* endpoint_of(const std::string& path) {
  const auto* found = std::find_if(std::begin(kEndpoints), std::end(kEndpoints), [&](const Endpoint& r) {
    const std::string_view known = r.path;  // a star stands for the rest
    return known.ends_with('*') ? path.starts_with(known.substr(0, known.size() - 1)) : path == known;
  });
  return found == std::end(kEndpoints) ? nullptr : found;
}

const char* api_of(const std::string& path) {
  const Endpoint* endpoint = endpoint_of(path);
  return endpoint ? endpoint->api : "other";
}

bool is_deepl(const std::string& path) { return path.starts_with("/v2/"); }

void allow_origins(HttpResponse& response) { response.headers.emplace_back("Access-Control-Allow-Origin", "*"); }

// Returns an event as browsers' EventSource has it; `data` has no line breaks.
std::string event_text(const char* event, const std::string& data) { return fmt::format("event: {}\ndata: {}\n\n", event, data); }

HttpResponse stream_answer(std::shared_ptr<HttpStream> stream) {
  HttpResponse r{200, "", "text/event-stream; charset=utf-8", {}, std::move(stream)};
  r.headers = {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}};  // the latter keeps nginx from collecting the events
  allow_origins(r);
  return r;
}

HttpResponse preflight() {
  HttpResponse r{204, "", "", {}};
  r.headers = {{"Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"},
               {"Access-Control-Allow-Headers", "Authorization, Content-Type"},
               {"Access-Control-Max-Age", "600"}};
  return r;
}

// Shortens a message, which may repeat what the client sent.
std::string brief(std::string why) {
  constexpr size_t kMostBytes = 500;
  if (why.size() <= kMostBytes) return why;
  size_t size = kMostBytes;
  while (size > 0 && is_continuation(static_cast<unsigned char>(why[size]))) --size;
  return why.substr(0, size) + "...";
}

HttpResponse plain(const ApiError& e, const std::string& path) {
  HttpResponse r = is_deepl(path) ? deepl_error(e.status, brief(e.what())) : error_answer(e.status, brief(e.what()));
  if (e.retry_seconds > 0) r.headers.emplace_back("Retry-After", std::to_string(e.retry_seconds));
  return r;
}

const char* reason_of(int status) {
  switch (status) {
    case 403:
      return "key";
    case 413:
      return "body";
    case 429:
      return "busy";
    case 503:
      return "unready";
    case 504:
      return "deadline";
    default:
      return "request";
  }
}

// Returns the key, from the request's parameter or its header.
std::string key_of(const HttpRequest& request, const std::string& parameter) {
  if (!parameter.empty()) return parameter;
  const std::string_view header = request.header("authorization");
  for (const std::string_view scheme : {"Bearer ", "DeepL-Auth-Key "})
    if (header.starts_with(scheme)) return std::string(header.substr(scheme.size()));
  return "";
}

}  // namespace

// A request until it is answered.
struct Service::Exchange {
  Service& service;
  std::shared_ptr<const HttpRequest> request;
  HttpServer::Reply reply;
  double begin;
  std::shared_ptr<JobSize> size = std::make_shared<JobSize>();
  std::string key = {};  // the key's name
  std::optional<TextQuery> query = {};
  std::optional<std::vector<TranslatedText>> texts = {};
  std::mutex mutex = {};  // guards the next two members
  bool answered = false;
  std::shared_ptr<HttpStream> stream = {};  // of an answer that has begun
  std::atomic<bool> recorded = false;

  void answer(HttpResponse response) {
    if (end_stream(response)) return;
    allow_origins(response);
    record(response.status);
    reply(std::move(response));
  }
  // Sends an event of an answer that is a stream, which the first event begins. Of previews only those are sent for which the client waits.
  void tell(const char* event, size_t text, const std::string& what, bool preview = false) {
    const std::lock_guard lock(mutex);
    if (answered || (preview && stream && !stream->caught_up())) return;
    const std::string bytes = event_text(event, json_text({{"index", text}, {"text", what}}));
    if (stream) return stream->write(bytes);
    const auto begun = std::make_shared<HttpStream>();
    begun->write(bytes);
    reply(stream_answer(begun));
    stream = begun;
  }
  // From now on there are no events. Ends an answer that has begun with what would be its body; returns whether one has.
  bool end_stream(const HttpResponse& response) {
    const std::lock_guard lock(mutex);
    answered = true;
    if (!stream) return false;
    record(response.status);
    stream->write(event_text(response.status == 200 ? "done" : "error", response.body));
    stream->end();
    return true;
  }
  void refuse(const ApiError& e) {
    service.metrics_.count("starling_rejected_total", fmt::format("reason=\"{}\"", reason_of(e.status)));
    answer(plain(e, request->path));
  }
  void record(int status) {
    if (recorded.exchange(true)) return;
    const double seconds = serve_seconds() - begin;
    const std::string api = fmt::format("api=\"{}\"", api_of(request->path));
    service.metrics_.count("starling_requests_total", fmt::format("{},code=\"{}\"", api, status));
    service.metrics_.observe("starling_request_duration_seconds", api, seconds);
    if (!service.log_.on()) return;
    nlohmann::ordered_json entry{{"time", log_time()},    {"client", request->client}, {"method", request->method},
                                 {"path", request->path}, {"status", status},          {"seconds", std::round(seconds * 1e6) / 1e6}};
    if (!key.empty()) entry["key"] = key;
    if (query) {
      entry["source"] = query->source;
      entry["target"] = query->target;
      entry["texts"] = query->texts.size();
      entry["sentences"] = size->sentences.load();
      entry["characters"] = size->characters.load();
      if (size->pivoted > 0) entry["pivoted"] = size->pivoted.load();
      if (service.options_.log_texts) {
        entry["q"] = query->texts;
        if (texts)
          for (const TranslatedText& t : *texts) entry["translated"].push_back(t.text);
      }
    }
    service.log_.write(entry);
  }
};

void Service::set_keys(ApiKeys keys) {
  const std::lock_guard lock(keys_mutex_);
  keys_ = std::make_shared<const ApiKeys>(std::move(keys));
}

void Service::admit(Exchange& exchange, const std::string& parameter) {
  std::shared_ptr<const ApiKeys> keys;
  {
    const std::lock_guard lock(keys_mutex_);
    keys = keys_;
  }
  const auto take = [&](const std::string& name, double per_minute, const std::string& whose) {
    const auto wait = rates_.take(name, per_minute, serve_seconds());
    if (!wait) return;
    ApiError slow(429, fmt::format("{} allows {:g} requests per minute; try again later", whose, per_minute));
    slow.retry_seconds = static_cast<int>(std::ceil(*wait));
    throw slow;
  };
  if (!keys) return take(network_of(exchange.request->client), options_.requests_a_minute, "the server");
  const ApiKey* known = keys->find(key_of(*exchange.request, parameter));
  if (!known) throw ApiError(403, "Invalid API key; send the api_key that you were given");
  exchange.key = known->name;
  take(known->name, known->per_minute, "the key " + known->name);
}

HttpResponse Service::refuse(const HttpRequest& request, int status, const std::string& why) {
  HttpResponse response;
  ApiError error(status, why);
  if (status == 429) error.retry_seconds = 1;
  Exchange{*this, std::make_shared<const HttpRequest>(request), [&](HttpResponse r) { response = std::move(r); }, serve_seconds()}.refuse(
      error);
  return response;
}

// Answers a request that needs no translation; returns nothing if there are texts to translate.
std::optional<HttpResponse> Service::at_once(Exchange& exchange) {
  const HttpRequest& request = *exchange.request;
  if (request.method == "OPTIONS") return preflight();
  const Endpoint* endpoint = endpoint_of(request.path);
  if (!endpoint) throw ApiError(404, fmt::format("there is nothing at {}; translations are at /translate", request.path));
  const bool get = request.method == "GET" || request.method == "HEAD", post = request.method == "POST";
  if (!(get && endpoint->get) && !(post && endpoint->post) && endpoint->page != Page::deepl_glossaries)
    throw ApiError(405, fmt::format("{} takes {}", request.path, !endpoint->post ? "GET" : endpoint->get ? "POST or GET" : "POST"));
  const std::vector<Direction> directions = reachable(models_.directions(), options_.job.pivots);
  switch (endpoint->page) {
    case Page::translate:
    case Page::deepl_translate:
      return std::nullopt;
    case Page::translate_file:
      if (options_.files.bytes == 0) throw ApiError(403, "Files translation are disabled on this server.");
      return std::nullopt;
    case Page::download_file:
      return download_answer(files_, request.path);
    case Page::deepl_upload:
      return upload(exchange);
    case Page::deepl_document:
      return deepl_document_state(files_, request);
    case Page::detect:
      return detect(exchange);
    case Page::languages:
      return languages_answer(directions);
    case Page::settings:
      return settings_answer(directions, options_.limits, options_.files.bytes > 0 ? document_endings() : std::vector<std::string>());
    case Page::health:
      return json_response(200, {{"status", "ok"}});
    case Page::ready:
      return ready() ? json_response(200, {{"status", "ok"}}) : error_answer(503, draining_ ? "draining" : "loading");
    case Page::metrics:
      return metrics();
    case Page::page:
      return HttpResponse{200,
                          std::string(kPage),
                          "text/html; charset=utf-8",
                          {{"Content-Security-Policy", kPagePolicy}, {"X-Content-Type-Options", "nosniff"}}};
    case Page::openapi:
      return HttpResponse{200, std::string(kOpenApi), "application/json", {}};
    case Page::docs:
      return HttpResponse{200, std::string(kDocsPage), "text/html; charset=utf-8", {{"Content-Security-Policy", kPagePolicy}}};
    case Page::suggest:
      throw ApiError(403, "Suggestions are disabled on this server.");
    case Page::deepl_languages:
      return deepl_languages(RequestValues(request), directions);
    case Page::deepl_usage:
      return usage(exchange);
    case Page::deepl_glossary_pairs:
      return deepl_glossary_pairs(models_.directions());
    case Page::deepl_glossaries:
      return glossaries(exchange);
  }
  return std::nullopt;
}

HttpResponse Service::usage(Exchange& exchange) {
  admit(exchange, RequestValues(*exchange.request).text("auth_key").value_or(""));
  const std::lock_guard lock(keys_mutex_);
  return deepl_usage(characters_[exchange.key]);
}

HttpResponse Service::glossaries(Exchange& exchange) {
  admit(exchange, RequestValues(*exchange.request).text("auth_key").value_or(""));
  require_ready();
  return glossaries_.answer(*exchange.request, exchange.key, models_.directions());
}

HttpResponse Service::metrics() {
  metrics_.set("starling_ready", "", ready());
  int64_t queued = 0, cached = 0;
  for (const auto& m : models_.all()) {
    queued += m->scheduler().queued();
    cached += m->scheduler().cache_bytes();
  }
  metrics_.set("starling_queue_sentences", "", static_cast<double>(queued));
  metrics_.set("starling_cache_bytes", "", static_cast<double>(cached));
  return {200, metrics_.text(), "text/plain; version=0.0.4; charset=utf-8", {}};
}

HttpResponse Service::detect(Exchange& exchange) {
  const RequestValues values(*exchange.request);
  admit(exchange, values.text("api_key").value_or(""));
  require_ready();
  const std::string text = parse_detect(values);
  std::string words = Document(text, DocumentFormat::html, "").words();  // the request does not say whether it is HTML
  if (words.empty()) words = Document(text, DocumentFormat::text, "").words();
  return detect_answer(detect_languages(words, languages_of(models_.directions())));
}

void Service::require_ready() const {
  if (ready()) return;
  ApiError e(503,
             draining_ ? "the server is shutting down; send the request to another one" : "the models are being loaded; try again soon");
  e.retry_seconds = 5;
  throw e;
}

HttpServer::Cancel Service::translate(const Ended& exchange) {
  const double now = serve_seconds();
  const bool deepl = is_deepl(exchange->request->path);
  if (deepl) require_ready();  // before the models are loaded no languages are known
  exchange->query = deepl ? parse_deepl(*exchange->request, models_.directions()) : parse_translate(*exchange->request, options_.limits);
  TextQuery& query = *exchange->query;
  admit(*exchange, query.key);
  require_ready();
  if (!query.glossary_id.empty()) query.glossary = glossaries_.find(query.glossary_id, exchange->key, query.source, query.target);
  JobListeners listeners;
  if (exchange->query->stream) {
    listeners.more = [exchange](size_t text, const std::string& more) { exchange->tell("more", text, more); };
    listeners.preview = [exchange](size_t text, const std::string& begin) { exchange->tell("preview", text, begin, true); };
  }
  const auto done = [exchange, deepl](JobResult result) {
    if (result.error) return exchange->refuse(*result.error);
    exchange->service.count_characters(exchange->key, exchange->size->characters);
    if (exchange->service.options_.log_texts) exchange->texts = result.texts;
    exchange->answer(deepl ? deepl_answer(*exchange->query, result.texts) : translate_answer(*exchange->query, result.texts));
  };
  return start_translation(models_, *exchange->query, options_.job, now, now + options_.deadline_seconds, exchange->size, done,
                           std::move(listeners));
}

// Answers when the file is translated, as LibreTranslate does.
HttpServer::Cancel Service::translate_file(const Ended& exchange) {
  FileQuery file = parse_translate_file(*exchange->request);
  admit(*exchange, RequestValues(*exchange->request).text("api_key").value_or(""));
  require_ready();
  exchange->query.emplace();
  exchange->query->source = file.source, exchange->query->target = file.target;
  const auto done = [exchange, name = file.name](const std::string& id, const std::optional<ApiError>& error) {
    if (error) return exchange->refuse(*error);
    exchange->service.count_characters(exchange->key, exchange->size->characters);
    exchange->answer(translate_file_answer(*exchange->request, id, name));
  };
  return [this, id = files_.start(std::move(file), exchange->size, done)] { files_.cancel(id); };
}

// Takes a document, which is translated while the client asks for its state.
HttpResponse Service::upload(Exchange& exchange) {
  if (options_.files.bytes == 0) throw ApiError(403, "document translation is disabled on this server");
  require_ready();
  FileQuery file = parse_deepl_document(*exchange.request, models_.directions());
  admit(exchange, RequestValues(*exchange.request).text("auth_key").value_or(""));
  if (!file.glossary_id.empty()) file.glossary = glossaries_.find(file.glossary_id, exchange.key, file.source, file.target);
  const auto size = std::make_shared<JobSize>();
  const std::string id = files_.start(std::move(file), size, [this, size, key = exchange.key](const std::string&, const auto& error) {
    if (!error) count_characters(key, size->characters);
  });
  return deepl_document_answer(files_, id);
}

void Service::count_characters(const std::string& key, int64_t characters) {
  const std::lock_guard lock(keys_mutex_);
  characters_[key] += characters;
}

HttpServer::Cancel Service::handle(std::shared_ptr<const HttpRequest> request, HttpServer::Reply reply) {
  const auto exchange = std::shared_ptr<Exchange>(new Exchange{*this, std::move(request), std::move(reply), serve_seconds()});
  const bool is_file = exchange->request->path == "/translate_file";
  try {
    if (auto response = at_once(*exchange)) {
      exchange->answer(std::move(*response));
    } else if (const auto cancel = is_file ? translate_file(exchange) : translate(exchange)) {
      return [exchange, cancel] {
        cancel();
        exchange->service.metrics_.count("starling_cancelled_total");
        exchange->record(499);  // the status that other servers log when a client has gone
      };
    }
  } catch (const ApiError& e) {
    exchange->refuse(e);
  } catch (const std::exception& e) {
    exchange->refuse(ApiError(500, e.what()));
  }
  return nullptr;
}

}  // namespace starling
