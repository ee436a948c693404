#include "run/stop_signals.h"

#include <signal.h>

#include <atomic>
#include <mutex>

namespace starling {
namespace {

std::atomic<int> signal_received{0};
std::mutex mutex;
int alive = 0;

struct Handled {
  int signal, flags;
  struct sigaction before;
};
Handled handled[] = {{SIGINT, static_cast<int>(SA_RESETHAND), {}}, {SIGTERM, static_cast<int>(SA_RESETHAND), {}}, {SIGHUP, SA_RESTART, {}}};

}  // namespace

StopSignals::StopSignals() {
  const std::lock_guard lock(mutex);
  if (alive++ > 0) return;
  signal_received = 0;
  for (Handled& h : handled) {
    struct sigaction action {};
    action.sa_handler = [](int signal) { signal_received = signal; };
    action.sa_flags = h.flags;
    sigaction(h.signal, nullptr, &h.before);
    if (h.before.sa_handler != SIG_IGN) sigaction(h.signal, &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  const std::lock_guard lock(mutex);
  if (--alive > 0) return;
  for (const Handled& h : handled) sigaction(h.signal, &h.before, nullptr);
}

int StopSignals::received() { return signal_received; }

}  // namespace starling
