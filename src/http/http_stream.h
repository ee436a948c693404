// The body of an answer that is written while the client reads it. All calls may come from any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace starling {

class HttpStream {
 public:
  // Adds bytes, which are sent as soon as the client takes them; dropped after end().
  void write(std::string_view bytes);
  // Says that the body is complete.
  void end();
  bool ended() const;
  // Returns whether the client has been sent all that was written.
  bool caught_up() const;

  // For the server. `more` is called, without a lock, after each write() and end().
  void attach(std::function<void()> more);
  // Moves up to `most` bytes to `to` and returns their number; 0 if there are none yet, or no more.
  size_t take(char* to, size_t most);

 private:
  mutable std::mutex mutex_;
  std::string unsent_;
  size_t taken_ = 0;  // bytes of unsent_
  bool ended_ = false;
  std::function<void()> more_;
};

}  // namespace starling
