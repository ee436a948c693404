// A request between the HTTP library and whoever answers it: http/http.cpp alone makes use of it.
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

// A connection, and since when it has been the client's turn: to send a request, or to fetch an answer.
struct HttpLink {
  using Clock = std::chrono::steady_clock;
  int fd;
  std::optional<Clock::time_point> theirs;
  std::string target;               // of the request that has begun, as it was sent
  const char* target_at = nullptr;  // where that came
};

// A request on its way. The library's thread of its connection reads it; whoever answers it may be another.
struct HttpExchange {
  using Clock = HttpLink::Clock;
  MHD_Connection* connection = nullptr;
  HttpLink* link = nullptr;
  std::shared_ptr<HttpRequest> request = std::make_shared<HttpRequest>();
  int64_t body_bytes = 0;  // that have come
  const Clock::time_point since = Clock::now();
  std::atomic<int64_t> held_bytes{0};  // of them in memory, counted among those of all
  bool crowded = false;                // there was no room for the body
  bool begun = false;
  bool chunked = false;  // nothing else is read from such a connection: chunks can be framed in ways that not all programs see alike
  bool waits = false;    // is to be answered before the server ends; guarded by the server's mutex

  std::mutex mutex;  // of what follows
  bool suspended = false, gone = false;
  bool taken = false;  // by whoever takes the body apart; until then a client that goes takes it along
  std::optional<HttpResponse> answer;
  HttpServer::Cancel cancel;

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
  // False when the client has gone.
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
    pollfd look{link->fd, POLLRDHUP, 0};  // however much of further requests it has sent before
    return poll(&look, 1, 0) > 0;
  }
  using Cancel = HttpServer::Cancel;
};

}  // namespace starling
