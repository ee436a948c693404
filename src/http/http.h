// Serves HTTP/1.1 with libmicrohttpd behind a small interface: a handler gets complete requests and answers each through a function,
// immediately or later, from any thread. Waiting connections cost no thread. Nothing above this file knows the library, and tests need no
// socket.
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
  std::string client;   // address of the client; see HttpLimits::proxies
  NamedValues headers;  // names in lower case
  NamedValues fields;   // from the query string and from an urlencoded or multipart body
  std::string body;     // empty if it was parsed into fields
  NamedValues files{};  // the names of files in a multipart body, by the names of their fields

  // Returns the first value of a header (name in lower case), or "".
  std::string_view header(std::string_view name) const;
  // Returns the content type without its parameters, in lower case.
  std::string content_type() const;
};

class HttpStream;

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  NamedValues headers;
  std::shared_ptr<HttpStream> stream = nullptr;  // instead of `body`, one that is written while the client reads it
};

struct HttpLimits {
  int64_t body_bytes = 1 << 20;         // larger bodies are refused with 413
  int64_t file_bytes = 0;               // the same at `file_paths`, if it is more
  std::vector<std::string> file_paths;  // where clients send files
  int64_t body_total_bytes = 64 << 20;  // limit for all requests in progress together; beyond it, requests are refused with 429
  double wait_seconds = 5;              // how long a large request may wait to be parsed; beyond that it is refused with 429
  unsigned connections = 1000;          // limit on open connections; near it, those that have been silent longest are closed
  unsigned idle_seconds = 60;           // seconds without a byte before a connection is closed
  unsigned request_seconds = 60;        // limit for sending a request, and for fetching its answer, however the bytes are spread
  std::vector<std::string> proxies;     // addresses whose X-Forwarded-For is trusted
};

class HttpServer {
 public:
  // Answers the request; call it once, from any thread.
  using Reply = std::function<void(HttpResponse)>;
  // Called when the client no longer waits for the answer, or for the rest of one whose stream has not ended.
  using Cancel = std::function<void()>;
  // Handles a request. The cancel function that it returns may be null; an exception becomes status 500.
  using Handler = std::function<Cancel(std::shared_ptr<const HttpRequest>, Reply)>;
  // Creates the answer to a request that is refused before a handler sees it, such as one with a body that is too large or a malformed
  // form. Called once per refused request.
  using Refusal = std::function<HttpResponse(const HttpRequest&, int status, const std::string& why)>;

  // Listens at "HOST:PORT" ("[::1]:5000" for IPv6; port 0: a free one). Throws ConfigError if the address is invalid or unavailable.
  HttpServer(const std::string& address, const HttpLimits& limits, Handler handler, Refusal refusal);
  // Closes all connections. All requests must have been answered or cancelled; see cancel_all.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  // Returns the number of requests whose answer is pending or has not been fetched, without those that arrived after drain().
  int64_t waiting() const;
  // Detects clients that have gone, requests that never end, answers that are never fetched, silent connections when connections run short,
  // and slow bodies when memory for bodies runs short. Call it a few times per second.
  void watch();
  // From now on each connection ends with its next answer, and waiting() falls to 0 whatever else arrives.
  void drain();
  // Cancels all requests that are still waiting.
  void cancel_all();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace starling
