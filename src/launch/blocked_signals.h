// Signals that a program waits for while others run under it.
#pragma once

#include <signal.h>
#include <time.h>

#include <algorithm>

namespace starling {

// The signals to stop, and the end of a child, blocked while this exists.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&waited_);
    // A signal that is ignored, as under nohup, must stay ignored: if blocked, it would still be seen.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) {
      struct sigaction now {};
      sigaction(signal, nullptr, &now);
      if (now.sa_handler != SIG_IGN) sigaddset(&waited_, signal);
    }
    ::signal(SIGCHLD, SIG_DFL);
    sigaddset(&waited_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &waited_, &before_);
  }
  ~BlockedSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  const sigset_t& set() const { return waited_; }
  const sigset_t& before() const { return before_; }
  // Returns the next signal, or 0 if none comes in time.
  int wait(double seconds) const {
    const auto whole = static_cast<time_t>(seconds);
    const timespec time{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
    return std::max(sigtimedwait(&waited_, nullptr, &time), 0);
  }

 private:
  sigset_t waited_{}, before_{};
};

}  // namespace starling
