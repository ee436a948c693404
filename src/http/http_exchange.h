// The state of a request between the HTTP library and its handler, for http/http.cpp only.
#pragma once

#include <microhttpd.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "http/http.h"

namespace starling {

// A connection, and since when it has been the client's turn to send a request or to fetch an answer.
struct HttpLink {
  using Clock = std::chrono::steady_clock;
  int fd;
  std::optional<Clock::time_point> theirs;
  std::string target;               // target of the current request, as it was sent
  const char* target_at = nullptr;  // its position in the library's buffer
};

// A request in progress. The library's thread for its connection reads it; another thread may answer it.
struct HttpExchange {
  using Clock = HttpLink::Clock;
  MHD_Connection* connection = nullptr;
  HttpLink* link = nullptr;
  std::shared_ptr<HttpRequest> request = std::make_shared<HttpRequest>();
  int64_t body_bytes = 0;  // bytes received
  const Clock::time_point since = Clock::now();
  std::atomic<int64_t> held_bytes{0};  // bytes of the body in memory, included in the server's total
  bool crowded = false;                // refused because memory for bodies was short
  bool begun = false;
  bool chunked = false;  // no further request is read from such a connection, because programs frame chunks in different ways
  bool waits = false;    // must be answered before the server ends; guarded by the server's mutex

  std::mutex mutex;  // guards the members below
  bool suspended = false, gone = false;
  bool taken = false;  // the body is being parsed; until then it is dropped when the client goes
  std::optional<HttpResponse> answer;
  HttpServer::Cancel cancel;

  // Resumes the connection, which has an answer or whose client has gone.
  void resume() {
    if (!suspended) return;
    suspended = false;
    MHD_resume_connection(connection);
  }
  void reply(HttpResponse response) {
    Cancel unused;  // holds the request, which holds this object
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
  // Claims the body for parsing; returns false if the client has gone.
  bool take() {
    const std::lock_guard lock(mutex);
    return taken = !gone;
  }
  void drop_body() {
    const std::lock_guard lock(mutex);
    if (!taken) std::string().swap(request->body);
  }
  bool client_has_gone() {
    const std::lock_guard lock(mutex);
    if (!suspended) return false;
    pollfd look{link->fd, POLLRDHUP, 0};  // works whatever further requests the client has sent before it went
    return poll(&look, 1, 0) > 0;
  }
  using Cancel = HttpServer::Cancel;
};

}  // namespace starling
