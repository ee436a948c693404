#include "train/stop_signals.h"

#include <signal.h>

#include <atomic>
#include <mutex>

namespace starling {
namespace {

std::atomic<int> signal_received{0};
std::mutex mutex;
int alive = 0;
struct sigaction old_int, old_term;

}  // namespace

StopSignals::StopSignals() {
  const std::lock_guard lock(mutex);
  if (alive++ > 0) return;
  signal_received = 0;
  struct sigaction action {};
  action.sa_handler = [](int signal) { signal_received = signal; };
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, &old_int), sigaction(SIGTERM, &action, &old_term);
}

StopSignals::~StopSignals() {
  const std::lock_guard lock(mutex);
  if (--alive > 0) return;
  sigaction(SIGINT, &old_int, nullptr), sigaction(SIGTERM, &old_term, nullptr);
}

int StopSignals::received() { return signal_received; }

}  // namespace starling
