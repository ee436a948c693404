#include "base/stop_note.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/messages.h"

namespace starling {
namespace {

struct Handled {
  int signal;
  struct sigaction before;
};
std::array<Handled, 3> handled{{{SIGINT, {}}, {SIGTERM, {}}, {SIGHUP, {}}}};
// A handler on another thread may still be about to write an earlier line when the next ones are set. It then ends the process, so a few
// earlier lines are enough.
std::array<std::string, 8> lines;
size_t latest = 0;
std::atomic<const std::string*> line{nullptr};
std::atomic<int> writing{0}, waiting{0};  // waiting: a signal, or 0

// Calls only functions that a signal handler may call.
void end_by(int signal) {
  constexpr int kPatience = 1000;  // ms, if nobody reads
  if (const std::string* text = line) {
    std::string_view left = *text;
    write_what_fits(STDERR_FILENO, left, kPatience);
  }
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(signal);
  _exit(128 + signal);  // the first process of a container does not die of signals
}

void answer(int signal) {
  if (writing > 0 && waiting == 0)
    waiting = signal;
  else
    end_by(signal);
}

// Adds what erases the live line of a terminal.
std::string rendered(const std::string& text) {
  const char* term = std::getenv("TERM");
  const bool draws = isatty(STDERR_FILENO) && !(term && std::string_view(term) == "dumb");
  return text.empty() ? "" : (draws ? "\r\x1b[K" : "") + ("starling: " + text) + "\n";
}

void set_line(std::string text) {
  latest = (latest + 1) % lines.size();
  lines[latest] = rendered(std::move(text));
  line = &lines[latest];
}

}  // namespace

StopNote::StopNote(std::string text) {
  CHECK(line == nullptr, "two notes at a time");
  set_line(std::move(text));
  for (Handled& h : handled) {
    struct sigaction action {};
    action.sa_handler = answer;
    action.sa_flags = SA_RESTART;
    sigaction(h.signal, nullptr, &h.before);
    if (h.before.sa_handler != SIG_IGN) sigaction(h.signal, &action, nullptr);
  }
}

StopNote::~StopNote() {
  for (const Handled& h : handled) sigaction(h.signal, &h.before, nullptr);
  line = nullptr;
}

void StopNote::set(std::string text) { set_line(std::move(text)); }

WholeWrite::WholeWrite() { ++writing; }

WholeWrite::~WholeWrite() {
  if (--writing == 0 && waiting != 0) end_by(waiting);
}

void WholeWrite::done(std::string text) {
  if (line != nullptr) set_line(std::move(text));
}

}  // namespace starling
