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
#include "http/http_stream.h"

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
  std::mutex* links_mutex = nullptr;            // guards what the link holds
  const std::atomic<bool>* stopping = nullptr;  // the server's: no connection may be suspended any more
  std::shared_ptr<HttpRequest> request = std::make_shared<HttpRequest>();
  int64_t body_bytes = 0;  // bytes received,
  int64_t most_bytes = 0;  // of at most this many
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

  // Holds the connection up until resume().
  MHD_Result suspend() {
    suspended = true;
    MHD_suspend_connection(connection);
    return MHD_YES;
  }
  // Resumes the connection, which has an answer or whose client has gone.
  void resume() {
    if (!suspended) return;
    suspended = false;
    MHD_resume_connection(connection);
  }
  void resume_later() {
    const std::lock_guard lock(mutex);
    resume();
  }
  void set_turn(std::optional<Clock::time_point> theirs) {
    const std::lock_guard lock(*links_mutex);
    link->theirs = theirs;
  }
  // Whether somebody still works on the answer.
  bool unfinished() const { return !answer || (answer->stream && !answer->stream->ended()); }
  void reply(HttpResponse response) {
    Cancel unused;  // holds the request, which holds this object
    const std::lock_guard lock(mutex);
    if (gone || answer) return;
    answer = std::move(response);
    if (!answer->stream) unused = std::move(cancel);
    resume();
  }
  // Fills `to` with what there is of a stream; suspends the connection if there is nothing yet.
  ssize_t read_stream(char* to, size_t most) {
    const std::lock_guard lock(mutex);
    const bool ended = answer->stream->ended();  // asked first: nothing is written after it
    if (const size_t count = answer->stream->take(to, most); count > 0) {
      if (!link->theirs) set_turn(Clock::now());
      return static_cast<ssize_t>(count);
    }
    if (ended) return MHD_CONTENT_READER_END_OF_STREAM;
    if (gone || *stopping) return MHD_CONTENT_READER_END_WITH_ERROR;
    set_turn(std::nullopt);
    suspend();
    return 0;
  }
  void give_up() {
    Cancel now;  // or unused, and holds this object
    {
      const std::lock_guard lock(mutex);
      if (gone) return;
      now = std::move(cancel);
      if (!unfinished()) return;
      gone = true;
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
