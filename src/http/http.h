// HTTP/1.1 by libmicrohttpd, behind a small interface: a handler gets whole requests and answers each through a function, at once or later
// from any thread. A connection that waits costs no thread. Nothing above this file knows the library, and tests need no socket.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace starling {

using NamedValues = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method, path;
  std::string client;   // the address it came from: see HttpLimits::proxies
  NamedValues headers;  // names in lower case
  NamedValues fields;   // of the query string, and of an urlencoded or multipart body
  std::string body;     // unless its fields were taken out

  // The first value of a header (name in lower case); "" without one.
  std::string_view header(std::string_view name) const;
  // The content type without its parameters, in lower case.
  std::string content_type() const;
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  NamedValues headers;
};

struct HttpLimits {
  int64_t body_bytes = 1 << 20;         // a larger body is refused with 413
  int64_t body_total_bytes = 64 << 20;  // of all requests under way together; what would be more is refused with 429
  double wait_seconds = 5;              // that a large request waits for others before it is taken apart; else it is refused with 429
  unsigned connections = 1000;          // open at the same time; nearly so many, and those that have long been silent are closed
  unsigned idle_seconds = 60;           // without a byte, before a connection is closed
  unsigned request_seconds = 60;        // that sending a request may take, and fetching its answer, however the bytes are spread
  std::vector<std::string> proxies;     // addresses whose word is taken for where a request came from (X-Forwarded-For)
};

class HttpServer {
 public:
  // Answers the request; to be called once, from any thread.
  using Reply = std::function<void(HttpResponse)>;
  // Called when nobody waits for the answer any more.
  using Cancel = std::function<void()>;
  // What to do with a request. The cancel function that it gives may be null; an exception becomes status 500.
  using Handler = std::function<Cancel(std::shared_ptr<const HttpRequest>, Reply)>;
  // Makes the answer to what is refused before a handler sees it: a body that is too large, a form that is broken. Once for each.
  using Refusal = std::function<HttpResponse(const HttpRequest&, int status, const std::string& why)>;

  // Listens at "HOST:PORT" ("[::1]:5000" for IPv6; port 0: a free one). ConfigError when the address is none or cannot be had.
  HttpServer(const std::string& address, const HttpLimits& limits, Handler handler, Refusal refusal);
  // Closes all connections. Every request must have been answered or cancelled: see cancel_all.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  // Requests that are to be answered, and whose answer has not been fetched; those that came after drain() do not count.
  int64_t waiting() const;
  // Looks for clients that have gone, for requests that never end, answers that are never fetched, for silent connections where they
  // become few, and for slow bodies where their memory does; to be called a few times a second.
  void watch();
  // From now on a connection ends with its next answer, and waiting() goes to 0 whatever still comes.
  void drain();
  // Ends what is still waiting.
  void cancel_all();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace starling
