#include "base/messages.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>

namespace starling {
namespace {

// A pipe that polls as writable accepts this many bytes without blocking.
constexpr size_t kPiece = PIPE_BUF;

// Suppresses SIGPIPE, the signal that a reader has gone, on this thread while the object lives.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    before_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &mask_);
  }
  ~WithoutPipeSignal() {
    const timespec now{0, 0};
    if (!before_ && broken)
      while (sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;
  bool broken = false;  // whether the signal was raised

 private:
  sigset_t pipe_{}, mask_{};
  bool before_ = false;
};

}  // namespace

Written write_what_fits(int file, std::string_view& text, int patience_ms) noexcept {
  WithoutPipeSignal without;
  while (!text.empty()) {
    pollfd look{file, POLLOUT, 0};
    const int ready = poll(&look, 1, patience_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return Written::stalled;
    const ssize_t count = ready < 0 ? -1 : ::write(file, text.data(), std::min(text.size(), kPiece));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return Written::stalled;  // another writer filled it first
    without.broken |= count < 0 && errno == EPIPE;
    if (count <= 0) return Written::failed;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return Written::all;
}

bool Messages::write(std::string_view text) noexcept {
  const int error = errno;  // a caller that reports a failure still needs it afterwards
  const std::lock_guard lock(mutex_);
  const bool whole = (!cut_ || write_all("\n")) && write_all(text);
  errno = error;
  return whole;
}

bool Messages::write_all(std::string_view text) noexcept {
  const size_t size = text.size();
  const Written written = write_what_fits(file_, text, stalled_ ? 0 : patience_ms_);
  stalled_ = written == Written::stalled;
  if (text.size() < size) cut_ = written != Written::all && text.data()[-1] != '\n';
  return written == Written::all;
}

void tell(std::string_view text) noexcept {
  static Messages standard_error(STDERR_FILENO);  // one for the process, hence one lock
  standard_error.write(text);
}

}  // namespace starling
