// Asks a caller, while it waits, whether to give up what it asked for.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <utility>

#include "starling/error.h"

namespace starling {

inline v0::Error cancelled() { return {v0::ErrorKind::cancelled, "the translation was cancelled at the caller's request"}; }

class Stopping {
 public:
  // `asked` may be empty.
  explicit Stopping(std::function<bool()> asked) : asked_(std::move(asked)) {}

  // Throws v0::Error if the caller wants to give up. It is asked at most once per interval, so call this as often as you like.
  void poll() {
    if (!asked_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + kInterval;
    if (asked_()) throw cancelled();
  }

  // Waits for a result; calls give_up() before throwing if the caller wants to give up.
  template <class Result, class GiveUp>
  Result wait(std::future<Result>& result, GiveUp give_up) {
    while (result.wait_for(kInterval) != std::future_status::ready) {
      try {
        poll();
      } catch (...) {
        give_up();
        throw;
      }
    }
    return result.get();
  }

 private:
  static constexpr std::chrono::milliseconds kInterval{50};
  std::function<bool()> asked_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace starling
