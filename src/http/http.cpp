#include "http/http.h"

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
#include <new>
#include <optional>
#include <set>
#include <thread>

#include "base/error.h"
#include "http/client_address.h"
#include "http/forms.h"
#include "http/http_exchange.h"
#include "http/listen.h"
#include "http/request_head.h"
#include "http/task_threads.h"

namespace starling {
namespace {

using Link = HttpLink;
using Exchange = HttpExchange;
using Clock = Link::Clock;

constexpr size_t kConnectionMemory = 32 << 10;   // bytes per connection: longer headers are refused with 431
constexpr size_t kStreamBlock = 4 << 10;         // bytes of a streamed body that are sent at once
constexpr unsigned kThreads = 4;                 // threads that read requests and write answers
constexpr size_t kLargeBody = 4 << 10;           // bytes from which on a request takes long to parse
constexpr size_t kLargeThreads = 16;             // threads that parse large requests, so that small ones do not wait behind them,
constexpr size_t kLargeAtOnce = 2;               // and how many of them run at the same time
constexpr int64_t kRefusedBodyFactor = 4;        // multiple of the body limit that a refused client may still send before it is cut off
constexpr auto kSlow = std::chrono::seconds(1);  // a body that takes longer is slow, when memory is short
constexpr size_t kMostFields = 20000;            // of a form: each field takes far more memory than its two bytes

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

// Creates a response whose body is read from the stream of the exchange's answer as it is written.
MHD_Response* streamed(const std::shared_ptr<Exchange>& exchange) {
  const auto read = [](void* of, uint64_t, char* to, size_t most) {
    return (*static_cast<std::shared_ptr<Exchange>*>(of))->read_stream(to, most);
  };
  const auto release = [](void* of) { delete static_cast<std::shared_ptr<Exchange>*>(of); };
  auto* of = new std::shared_ptr<Exchange>(exchange);
  MHD_Response* response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kStreamBlock, read, of, release);
  if (!response) delete of;
  return response;
}

MHD_Result send(MHD_Connection* connection, const HttpResponse& answer, bool close, MHD_Response* response = nullptr) {
  if (!response)
    response = MHD_create_response_from_buffer(answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  if (!response) return MHD_NO;
  if (!answer.body.empty() || answer.stream) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.type.c_str());
  for (const auto& [name, value] : answer.headers) MHD_add_response_header(response, name.c_str(), value.c_str());
  if (close) MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  const MHD_Result queued = MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);
  return queued;
}

// Whether the library leaves request heads in place, apart from writing zeros after each token: see RequestHead. Versions from 1 on do not,
// but can be told to refuse ambiguous heads themselves; older versions then answer twice.
bool leaves_in_place() { return std::string_view(MHD_get_version()).starts_with("0."); }

MHD_Result take_view(void* head, MHD_ValueKind, const char* name, size_t name_size, const char* value, size_t value_size) {
  static_cast<RequestHead*>(head)->fields.emplace_back(std::string_view(name, name_size), std::string_view(value ? value : "", value_size));
  return MHD_YES;
}

MHD_Result take_value(void* values, MHD_ValueKind, const char* name, size_t name_size, const char* value, size_t value_size) {
  static_cast<NamedValues*>(values)->emplace_back(std::string(name, name_size), value ? std::string(value, value_size) : std::string());
  return MHD_YES;
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
  TaskThreads large{"reading large requests", kLargeThreads, kLargeAtOnce};
  std::atomic<int64_t> held_bytes{0};  // bytes of bodies in memory
  std::atomic<bool> draining{false};   // new requests are not waited for
  std::atomic<bool> stopping{false};   // no connection may be suspended or accepted any more
  std::mutex mutex;                    // guards the three members below
  std::set<std::shared_ptr<Exchange>> exchanges;
  std::map<MHD_Connection*, Link> links;
  std::set<std::thread::id> accepting;  // the library's threads that are about to add a connection

  // Records the request target before the library decodes it.
  static void* target(void* self, const char* uri, MHD_Connection* connection) {
    auto& server = *static_cast<Impl*>(self);
    const std::lock_guard lock(server.mutex);
    Link& link = server.links.at(connection);
    link.target.clear();
    link.target_at = uri;
    try {
      if (uri) link.target = uri;
    } catch (const std::bad_alloc&) {  // a request without a target is refused
    }
    return nullptr;
  }

  static MHD_Result access(void* self, MHD_Connection* connection, const char* url, const char* method, const char* version,
                           const char* data, size_t* size, void** state) {
    auto& server = *static_cast<Impl*>(self);
    try {
      if (!*state) return server.first(connection, url, method, version, state);
      const auto& exchange = *static_cast<std::shared_ptr<Exchange>*>(*state);
      if (*size > 0) return server.receive(*exchange, data, size);
      return server.complete(exchange);
    } catch (const std::exception&) {  // out of memory: exceptions must not pass through the C library
      return MHD_NO;
    }
  }

  // Returns what is wrong with the head of a request, or "".
  static std::string wrong_head(MHD_Connection* connection, const char* method, const Link& link, const char* version) {
    RequestHead head{method, link.target, version, {}, 0, nullptr};
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, take_view, &head);
    if (const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)) head.bytes = info->header_size;
    if (leaves_in_place()) head.target_at = link.target_at;
    return head_error(head);
  }

  MHD_Result first(MHD_Connection* connection, const char* url, const char* method, const char* version, void** state) {
    auto exchange = std::make_shared<Exchange>();
    HttpRequest& request = *exchange->request;
    exchange->connection = connection;
    request.method = method;
    request.path = url;
    request.client = client_address(connection);
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, take_value, &request.headers);
    for (auto& [name, value] : request.headers) name = lower(name);
    request.client = forwarded_client(request.client, request.headers, limits.proxies);
    MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, take_value, &request.fields);
    {
      const std::lock_guard lock(mutex);
      exchange->link = &links.at(connection);
      exchange->links_mutex = &mutex, exchange->stopping = &stopping;
      exchanges.insert(exchange);
    }
    exchange->most_bytes = most_bytes(request.path);
    *state = new std::shared_ptr<Exchange>(exchange);
    const std::string wrong = wrong_head(connection, method, *exchange->link, version);
    if (!wrong.empty()) return send(connection, refusal(request, 400, wrong), true);
    exchange->chunked = !request.header("transfer-encoding").empty();
    const std::string_view length = request.header("content-length");
    int64_t bytes = 0;
    const auto read = std::from_chars(length.data(), length.data() + length.size(), bytes);
    const bool endless = !length.empty() && (read.ec != std::errc() || bytes > kRefusedBodyFactor * exchange->most_bytes);
    const bool large = endless || bytes > exchange->most_bytes;
    exchange->crowded = !large && bytes > 0 && held_bytes + bytes > limits.body_total_bytes;
    if (!large && !exchange->crowded) return MHD_YES;
    // The request is refused before its body is sent if the client waits for that. Other clients would be cut off while they send, and
    // proxies would then not forward the answer, so their bodies are read and discarded.
    if (!endless && request.header("expect").empty()) return MHD_YES;
    return send(connection, large ? too_large(request) : too_many(request), true);
  }

  int64_t most_bytes(const std::string& path) const {
    const bool files = std::find(limits.file_paths.begin(), limits.file_paths.end(), path) != limits.file_paths.end();
    return files ? std::max(limits.file_bytes, limits.body_bytes) : limits.body_bytes;
  }
  HttpResponse too_large(const HttpRequest& request) const {
    return refusal(request, 413, fmt::format("the request is larger than {} bytes; send it in parts", most_bytes(request.path)));
  }
  HttpResponse too_many(const HttpRequest& request) const {
    return refusal(request, 429, fmt::format("the requests in progress already hold {} bytes; try again soon", held_bytes.load()));
  }

  // The body stays in memory until its request is over, because whoever answers it may still read it.
  MHD_Result receive(Exchange& exchange, const char* data, size_t* size) {
    const int64_t bytes = static_cast<int64_t>(*size);
    exchange.body_bytes += bytes;
    if (exchange.body_bytes > kRefusedBodyFactor * exchange.most_bytes) return MHD_NO;
    if (exchange.body_bytes > exchange.most_bytes || exchange.crowded) {
      release(exchange);
    } else {
      exchange.held_bytes += bytes;
      exchange.crowded = (held_bytes += bytes) > limits.body_total_bytes;
      if (exchange.crowded)
        release(exchange);
      else
        exchange.request->body.append(data, *size);
    }
    *size = 0;
    return MHD_YES;
  }
  void release(Exchange& exchange) {
    held_bytes -= exchange.held_bytes.exchange(0);
    std::string().swap(exchange.request->body);
  }

  MHD_Result complete(const std::shared_ptr<Exchange>& exchange) {
    if (!exchange->begun) begin(exchange);
    {
      const std::lock_guard lock(exchange->mutex);
      if (exchange->gone || (stopping && !exchange->answer)) return MHD_NO;
      if (!exchange->answer) return exchange->suspend();
    }
    // The library locks responses when it makes them and while it calls read_stream, which locks the exchange.
    exchange->set_turn(Clock::now());
    const bool last = draining || exchange->chunked || exchange->body_bytes > exchange->most_bytes;
    return send(exchange->connection, *exchange->answer, last, exchange->answer->stream ? streamed(exchange) : nullptr);
  }

  void begin(const std::shared_ptr<Exchange>& exchange) {
    exchange->begun = true;
    {
      const std::lock_guard lock(mutex);
      exchange->link->theirs.reset();
      exchange->waits = !draining;
    }
    if (exchange->request->body.size() <= kLargeBody) {
      exchange->take();
      return handle(exchange);
    }
    const auto bytes = static_cast<int64_t>(exchange->request->body.size());
    if (const double wait = large.expected_wait(bytes); wait > limits.wait_seconds) {
      exchange->take();
      const std::string why = fmt::format("the server is busy with other large requests for about {:.1f} s; try again later", wait);
      return exchange->reply(refusal(*exchange->request, 429, why));
    }
    large.add(bytes, [this, exchange] {
      try {
        if (exchange->take()) handle(exchange);
      } catch (const std::exception&) {  // out of memory
        exchange->give_up();
      }
    });
  }

  void handle(const std::shared_ptr<Exchange>& exchange) {
    HttpRequest& request = *exchange->request;
    if (exchange->body_bytes > exchange->most_bytes) return exchange->reply(too_large(request));
    if (exchange->crowded) return exchange->reply(too_many(request));
    const std::string wrong = take_form(request, kMostFields);
    if (!wrong.empty()) return exchange->reply(refusal(request, 400, wrong));
    if (request.fields.size() >= kMostFields)
      return exchange->reply(refusal(request, 413, fmt::format("the request has {} fields or more; send it in parts", kMostFields)));
    Cancel cancel;
    try {
      cancel = handler(exchange->request, [exchange](HttpResponse answer) {
        if (answer.stream)
          answer.stream->attach([weak = std::weak_ptr(exchange)] {
            if (const auto e = weak.lock()) e->resume_later();
          });
        exchange->reply(std::move(answer));
      });
    } catch (const std::exception& e) {
      exchange->reply(refusal(request, 500, e.what()));
    }
    bool gone = false;
    {
      const std::lock_guard lock(exchange->mutex);
      gone = exchange->gone;
      if (exchange->unfinished() && !gone) exchange->cancel = std::move(cancel);
    }
    if (gone && cancel) cancel();
  }

  static void completed(void* self, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
    auto& server = *static_cast<Impl*>(self);
    const std::unique_ptr<std::shared_ptr<Exchange>> exchange(static_cast<std::shared_ptr<Exchange>*>(*state));
    *state = nullptr;
    if (!exchange) return;
    (*exchange)->give_up();  // if it was never answered
    (*exchange)->drop_body();
    server.held_bytes -= (*exchange)->held_bytes;
    const std::lock_guard lock(server.mutex);
    (*exchange)->link->theirs = Clock::now();
    server.exchanges.erase(*exchange);
  }

  // Whether the library may make a connection of a client that it has accepted.
  static MHD_Result welcome(void* self, const sockaddr*, socklen_t) {
    auto& server = *static_cast<Impl*>(self);
    const std::lock_guard lock(server.mutex);
    if (server.stopping) return MHD_NO;
    try {
      server.accepting.insert(std::this_thread::get_id());
    } catch (const std::bad_alloc&) {  // exceptions must not pass through the C library
      return MHD_NO;
    }
    return MHD_YES;
  }

  static void notify(void* self, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode code) {
    auto& server = *static_cast<Impl*>(self);
    const std::lock_guard lock(server.mutex);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
      server.links[connection] = {socket_of(connection), Clock::now(), {}, nullptr};
      server.accepting.erase(std::this_thread::get_id());
    } else {
      server.links.erase(connection);
    }
  }

  std::vector<std::shared_ptr<Exchange>> under_way() {
    const std::lock_guard lock(mutex);
    return {exchanges.begin(), exchanges.end()};
  }

  // Disconnects clients that take too long. If connections run short, it also disconnects those that have kept the server waiting longest,
  // so that new clients get in however many connections are silent.
  void cut_off() {
    const std::lock_guard lock(mutex);
    std::vector<std::pair<Clock::time_point, int>> theirs;
    for (const auto& [connection, link] : links)
      if (link.theirs) theirs.emplace_back(*link.theirs, link.fd);
    std::sort(theirs.begin(), theirs.end());
    const size_t most = limits.connections - limits.connections / 10 - 1;
    const size_t surplus = links.size() > most ? links.size() - most : 0;
    const auto latest = Clock::now() - std::chrono::seconds(limits.request_seconds);
    for (size_t i = 0; i < theirs.size(); ++i)
      if (i < surplus || theirs[i].first < latest) shutdown(theirs[i].second, SHUT_RDWR);
  }

  // Accepts no more clients and waits until all have been disconnected, for at most a second. A library that is told to stop while one of
  // its threads refuses a request by itself reads a null pointer (libmicrohttpd 0.9.75: MHD_queue_response reports success without
  // queueing), and MHD_quiesce_daemon may abort the program when it meets those threads.
  void disconnect_all() {
    for (int look = 0; look < 1000; ++look) {
      {
        const std::lock_guard lock(mutex);
        if (links.empty() && accepting.empty()) return;
        for (const auto& [connection, link] : links) shutdown(link.fd, SHUT_RDWR);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // Returns since when the client has been sending the request or fetching the answer.
  static Clock::time_point theirs_since(const Exchange& e) { return std::max(e.since, *e.link->theirs); }

  // If bodies use most of their memory limit, drops the requests that have been arriving, or whose answers have been fetched, for the
  // longest time. Clients that hold their bodies back thus keep nobody out.
  void make_room() {
    const std::lock_guard lock(mutex);
    int64_t surplus = held_bytes - limits.body_total_bytes / 4 * 3;
    if (surplus <= 0) return;
    std::vector<std::shared_ptr<Exchange>> slow;
    for (const auto& e : exchanges)
      if (e->link->theirs && e->held_bytes > 0 && theirs_since(*e) + kSlow < Clock::now()) slow.push_back(e);
    std::sort(slow.begin(), slow.end(), [](const auto& a, const auto& b) { return theirs_since(*a) < theirs_since(*b); });
    for (size_t i = 0; i < slow.size() && surplus > 0; ++i) {
      shutdown(slow[i]->link->fd, SHUT_RDWR);
      surplus -= slow[i]->held_bytes;
    }
  }
};

HttpServer::HttpServer(const std::string& address, const HttpLimits& limits, Handler handler, Refusal refusal)
    : impl_(std::make_unique<Impl>()) {
  Impl& s = *impl_;
  s.limits = limits, s.limits.connections = std::max(limits.connections, kThreads), s.handler = std::move(handler),
  s.refusal = std::move(refusal);
  s.socket = listen_at(address);
  // Mistakes of clients are not logged as errors of the server.
  const auto silent = [](void*, const char*, va_list) {};
  s.daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, Impl::welcome, &s,
                              Impl::access, &s, MHD_OPTION_EXTERNAL_LOGGER, static_cast<MHD_LogCallback>(silent), nullptr,
                              MHD_OPTION_LISTEN_SOCKET, s.socket, MHD_OPTION_THREAD_POOL_SIZE, kThreads, MHD_OPTION_CONNECTION_LIMIT,
                              s.limits.connections, MHD_OPTION_CONNECTION_TIMEOUT, limits.idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                              kConnectionMemory, MHD_OPTION_NOTIFY_COMPLETED, Impl::completed, &s, MHD_OPTION_NOTIFY_CONNECTION,
                              Impl::notify, &s, MHD_OPTION_URI_LOG_CALLBACK, Impl::target, &s, MHD_OPTION_STRICT_FOR_CLIENT,
                              leaves_in_place() ? 0 : 1, MHD_OPTION_END);
  if (!s.daemon) {
    close(s.socket);
    throw ConfigError(fmt::format(
        "--listen {}: the HTTP library cannot start its {} threads; allow more processes (ulimit -u) and open files", address, kThreads));
  }
}

HttpServer::~HttpServer() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  cancel_all();
  impl_->large.close();  // its tasks may resume connections
  impl_->disconnect_all();
  MHD_stop_daemon(impl_->daemon);
}

int HttpServer::port() const { return port_of(impl_->socket); }

int64_t HttpServer::waiting() const {
  const std::lock_guard lock(impl_->mutex);
  return std::count_if(impl_->exchanges.begin(), impl_->exchanges.end(), [](const auto& exchange) { return exchange->waits; });
}

void HttpServer::watch() {
  for (const auto& exchange : impl_->under_way())
    if (exchange->client_has_gone()) exchange->give_up();
  impl_->cut_off();
  impl_->make_room();
}

void HttpServer::drain() { impl_->draining = true; }

void HttpServer::cancel_all() {
  for (const auto& exchange : impl_->under_way()) exchange->give_up();
}

}  // namespace starling
