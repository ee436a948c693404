#include "run/stop_signals.h"

#include <signal.h>
#include <time.h>

#include <atomic>
#include <mutex>

namespace starling {
namespace {

std::atomic<int> signal_received{0};
std::atomic<double> received_at{0};  // seconds
std::mutex mutex;
int alive = 0;

struct Handled {
  int signal, flags;
  struct sigaction before;
};
Handled handled[] = {{SIGINT, 0, {}},           {SIGTERM, 0, {}},          {SIGHUP, SA_RESTART, {}},
                     {SIGUSR1, SA_RESTART, {}}, {SIGUSR2, SA_RESTART, {}}, {SIGXCPU, SA_RESTART, {}}};

// Calls only what a signal handler may call.
void receive(int signal) {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const double now = static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  const bool at_once = signal == SIGINT && signal_received == SIGINT;
  const bool kills = at_once || ((signal == SIGINT || signal == SIGTERM) && now - received_at >= StopSignals::kOneStop);
  if (signal_received != 0 && kills) {
    ::signal(signal, SIG_DFL);
    raise(signal);  // arrives when the handler returns
  } else if (signal_received == 0) {
    received_at = now;
    signal_received = signal;
  }
}

}  // namespace

StopSignals::StopSignals() {
  const std::lock_guard lock(mutex);
  if (alive++ > 0) return;
  signal_received = 0;
  for (Handled& h : handled) {
    struct sigaction action {};
    action.sa_handler = receive;
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
