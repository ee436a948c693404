#include "serve/http.h"

#include <microhttpd.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "base/error.h"
#include "serve/listen.h"

namespace starling {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kPostBuffer = 8192;            // bytes that the form parser may hold; keys are shorter
constexpr size_t kConnectionMemory = 32 << 10;  // bytes of one connection: longer headers are refused with 431
constexpr unsigned kThreads = 4;                // that read requests and write answers
constexpr int64_t kPatience = 4;                // body limits that a refused client may still send before it is cut off

std::string lower(std::string_view text) {
  std::string all(text);
  std::transform(all.begin(), all.end(), all.begin(), [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return all;
}

std::string client_address(MHD_Connection* connection) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  if (!info || !info->client_addr) return "";
  const socklen_t size = info->client_addr->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  char name[64] = "";
  getnameinfo(info->client_addr, size, name, sizeof name, nullptr, 0, NI_NUMERICHOST);
  return name;
}

int socket_of(MHD_Connection* connection) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? info->connect_fd : -1;
}

MHD_Result send(MHD_Connection* connection, const HttpResponse& answer) {
  MHD_Response* response =
      MHD_create_response_from_buffer(answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  if (!response) return MHD_NO;
  if (!answer.body.empty()) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.type.c_str());
  for (const auto& [name, value] : answer.headers) MHD_add_response_header(response, name.c_str(), value.c_str());
  const MHD_Result queued = MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);
  return queued;
}

// A connection, and since when its client has been sending a request.
struct Link {
  int fd;
  std::optional<Clock::time_point> receiving;
};

// A request on its way. The library's thread of its connection reads it; whoever answers it may be another.
struct Exchange {
  MHD_Connection* connection = nullptr;
  Link* link = nullptr;
  std::shared_ptr<HttpRequest> request = std::make_shared<HttpRequest>();
  MHD_PostProcessor* form = nullptr;
  int64_t body_bytes = 0;
  bool begun = false;

  std::mutex mutex;  // of what follows
  bool suspended = false, gone = false;
  std::optional<HttpResponse> answer;
  HttpServer::Cancel cancel;

  ~Exchange() {
    if (form) MHD_destroy_post_processor(form);
  }
  // Continues the connection, which has an answer or nobody to answer.
  void resume() {
    if (!suspended) return;
    suspended = false;
    MHD_resume_connection(connection);
  }
  void reply(HttpResponse response) {
    Cancel unused;  // holds the request, which holds this
    const std::lock_guard lock(mutex);
    if (gone || answer) return;
    answer = std::move(response);
    unused = std::move(cancel);
    resume();
  }
  void give_up() {
    Cancel now;
    {
      const std::lock_guard lock(mutex);
      if (gone || answer) return;
      gone = true;
      now = std::move(cancel);
      resume();
    }
    if (now) now();
  }
  bool client_has_gone() {
    const std::lock_guard lock(mutex);
    if (!suspended) return false;
    char byte;
    const ssize_t n = recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  }
  using Cancel = HttpServer::Cancel;
};

MHD_Result take_value(void* values, MHD_ValueKind, const char* name, size_t name_size, const char* value, size_t value_size) {
  static_cast<NamedValues*>(values)->emplace_back(std::string(name, name_size), value ? std::string(value, value_size) : std::string());
  return MHD_YES;
}

MHD_Result take_form(void* request, MHD_ValueKind, const char* key, const char*, const char*, const char*, const char* data,
                     uint64_t offset, size_t size) {
  NamedValues& fields = static_cast<HttpRequest*>(request)->fields;
  if (offset == 0)
    fields.emplace_back(key ? key : "", std::string(data ? data : "", size));
  else if (!fields.empty())
    fields.back().second.append(data, size);
  return MHD_YES;
}

// The library's own parser of these refuses a value with "=" in it, as curl -d sends it.
void take_urlencoded(std::string_view body, NamedValues& fields) {
  const auto unescaped = [](std::string_view text) {
    std::string value(text);
    std::replace(value.begin(), value.end(), '+', ' ');
    value.resize(MHD_http_unescape(value.data()));
    return value;
  };
  while (!body.empty()) {
    const std::string_view field = body.substr(0, body.find('&'));
    body.remove_prefix(std::min(field.size() + 1, body.size()));
    const size_t equals = std::min(field.find('='), field.size());
    if (!field.empty()) fields.emplace_back(unescaped(field.substr(0, equals)), unescaped(field.substr(std::min(equals + 1, field.size()))));
  }
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return "";
}

std::string HttpRequest::content_type() const {
  const std::string_view all = header("content-type");
  std::string_view type = all.substr(0, all.find(';'));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.remove_suffix(1);
  return lower(type);
}

struct HttpServer::Impl {
  HttpLimits limits;
  Handler handler;
  Refusal refusal;
  int socket = -1;
  MHD_Daemon* daemon = nullptr;
  std::atomic<bool> stopping{false};  // nothing may be suspended any more
  std::mutex mutex;                   // of both
  std::set<std::shared_ptr<Exchange>> exchanges;
  std::map<MHD_Connection*, Link> links;

  static MHD_Result access(void* self, MHD_Connection* connection, const char* url, const char* method, const char*, const char* data,
                           size_t* size, void** state) {
    auto& server = *static_cast<Impl*>(self);
    try {
      if (!*state) return server.first(connection, url, method, state);
      const auto& exchange = *static_cast<std::shared_ptr<Exchange>*>(*state);
      if (*size > 0) return server.receive(*exchange, data, size);
      return server.complete(exchange);
    } catch (const std::exception&) {  // no memory: the library is C
      return MHD_NO;
    }
  }

  MHD_Result first(MHD_Connection* connection, const char* url, const char* method, void** state) {
    auto exchange = std::make_shared<Exchange>();
    HttpRequest& request = *exchange->request;
    exchange->connection = connection;
    request.method = method, request.path = url, request.client = client_address(connection);
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, take_value, &request.headers);
    for (auto& [name, value] : request.headers) name = lower(name);
    MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, take_value, &request.fields);
    if (request.content_type() == "multipart/form-data")
      exchange->form = MHD_create_post_processor(connection, kPostBuffer, take_form, &request);
    {
      const std::lock_guard lock(mutex);
      exchange->link = &links.at(connection);
      exchanges.insert(exchange);
    }
    *state = new std::shared_ptr<Exchange>(exchange);
    // Refused before it is sent, where its length is told.
    const std::string_view length = request.header("content-length");
    int64_t bytes = 0;
    const auto read = std::from_chars(length.data(), length.data() + length.size(), bytes);
    if (!length.empty() && (read.ec != std::errc() || bytes > limits.body_bytes)) return send(connection, too_large());
    return MHD_YES;
  }

  HttpResponse too_large() const {
    HttpResponse answer = refusal(413, fmt::format("the request is larger than {} bytes; send it in parts", limits.body_bytes));
    answer.headers.emplace_back("Connection", "close");
    return answer;
  }

  MHD_Result receive(Exchange& exchange, const char* data, size_t* size) {
    exchange.body_bytes += static_cast<int64_t>(*size);
    if (exchange.body_bytes <= limits.body_bytes) {
      if (exchange.form)
        MHD_post_process(exchange.form, data, *size);
      else
        exchange.request->body.append(data, *size);
    } else if (exchange.body_bytes > kPatience * limits.body_bytes) {
      return MHD_NO;
    }
    *size = 0;
    return MHD_YES;
  }

  MHD_Result complete(const std::shared_ptr<Exchange>& exchange) {
    if (!exchange->begun) begin(exchange);
    const std::lock_guard lock(exchange->mutex);
    if (exchange->gone || (stopping && !exchange->answer)) return MHD_NO;
    if (exchange->answer) return send(exchange->connection, *exchange->answer);
    exchange->suspended = true;
    MHD_suspend_connection(exchange->connection);
    return MHD_YES;
  }

  void begin(const std::shared_ptr<Exchange>& exchange) {
    exchange->begun = true;
    if (exchange->form) {  // a last value may be without its end
      MHD_destroy_post_processor(exchange->form);
      exchange->form = nullptr;
    }
    {
      const std::lock_guard lock(mutex);
      exchange->link->receiving.reset();
    }
    if (exchange->body_bytes > limits.body_bytes) return exchange->reply(too_large());
    HttpRequest& request = *exchange->request;
    if (request.content_type() == "application/x-www-form-urlencoded") take_urlencoded(std::exchange(request.body, {}), request.fields);
    Cancel cancel;
    try {
      cancel = handler(exchange->request, [exchange](HttpResponse answer) { exchange->reply(std::move(answer)); });
    } catch (const std::exception& e) {
      exchange->reply(refusal(500, e.what()));
    }
    bool gone = false;
    {
      const std::lock_guard lock(exchange->mutex);
      gone = exchange->gone;
      if (!exchange->answer && !gone) exchange->cancel = std::move(cancel);
    }
    if (gone && cancel) cancel();
  }

  static void completed(void* self, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
    auto& server = *static_cast<Impl*>(self);
    const std::unique_ptr<std::shared_ptr<Exchange>> exchange(static_cast<std::shared_ptr<Exchange>*>(*state));
    *state = nullptr;
    if (!exchange) return;
    (*exchange)->give_up();  // where it was never answered
    const std::lock_guard lock(server.mutex);
    (*exchange)->link->receiving = Clock::now();
    server.exchanges.erase(*exchange);
  }

  static void notify(void* self, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode code) {
    auto& server = *static_cast<Impl*>(self);
    const std::lock_guard lock(server.mutex);
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
      server.links[connection] = {socket_of(connection), Clock::now()};
    else
      server.links.erase(connection);
  }

  std::vector<std::shared_ptr<Exchange>> under_way() {
    const std::lock_guard lock(mutex);
    return {exchanges.begin(), exchanges.end()};
  }
};

HttpServer::HttpServer(const std::string& address, const HttpLimits& limits, Handler handler, Refusal refusal)
    : impl_(std::make_unique<Impl>()) {
  Impl& s = *impl_;
  s.limits = limits, s.handler = std::move(handler), s.refusal = std::move(refusal);
  s.socket = listen_at(address);
  // What clients do wrong is no message of ours.
  const auto silent = [](void*, const char*, va_list) {};
  s.daemon =
      MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, nullptr, nullptr, Impl::access, &s,
                       MHD_OPTION_EXTERNAL_LOGGER, static_cast<MHD_LogCallback>(silent), nullptr, MHD_OPTION_LISTEN_SOCKET, s.socket,
                       MHD_OPTION_THREAD_POOL_SIZE, kThreads, MHD_OPTION_CONNECTION_LIMIT, std::max(limits.connections, kThreads),
                       MHD_OPTION_CONNECTION_TIMEOUT, limits.idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionMemory,
                       MHD_OPTION_NOTIFY_COMPLETED, Impl::completed, &s, MHD_OPTION_NOTIFY_CONNECTION, Impl::notify, &s, MHD_OPTION_END);
  if (!s.daemon) {
    close(s.socket);
    throw ConfigError(fmt::format(
        "--listen {}: the HTTP library cannot start its {} threads; allow more processes (ulimit -u) and open files", address, kThreads));
  }
}

HttpServer::~HttpServer() {
  impl_->stopping = true;
  cancel_all();
  MHD_stop_daemon(impl_->daemon);
}

int HttpServer::port() const { return port_of(impl_->socket); }

int64_t HttpServer::waiting() const {
  const std::lock_guard lock(impl_->mutex);
  return static_cast<int64_t>(impl_->exchanges.size());
}

void HttpServer::watch() {
  for (const auto& exchange : impl_->under_way())
    if (exchange->client_has_gone()) exchange->give_up();
  const auto latest = Clock::now() - std::chrono::seconds(impl_->limits.request_seconds);
  const std::lock_guard lock(impl_->mutex);
  for (const auto& [connection, link] : impl_->links)
    if (link.receiving && *link.receiving < latest) shutdown(link.fd, SHUT_RDWR);
}

void HttpServer::cancel_all() {
  for (const auto& exchange : impl_->under_way()) exchange->give_up();
}

}  // namespace starling
