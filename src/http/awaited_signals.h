// Signals to end or to reload, for programs that serve: they are awaited, not handled.
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace starling {

// Blocks SIGTERM, SIGINT and SIGHUP while it exists. Threads that start later inherit the blocked mask, so create it before them.
class AwaitedSignals {
 public:
  AwaitedSignals() {
    sigemptyset(&set_);
    for (const int s : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set_, s);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~AwaitedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AwaitedSignals(const AwaitedSignals&) = delete;
  AwaitedSignals& operator=(const AwaitedSignals&) = delete;
  // Returns the next signal, or 0 if none arrives in time.
  int wait(long nanoseconds) const {
    const timespec tick{0, nanoseconds};
    const int signal = sigtimedwait(&set_, nullptr, &tick);
    return signal > 0 ? signal : 0;
  }

 private:
  sigset_t set_{}, before_{};
};

}  // namespace starling
