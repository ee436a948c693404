#include "serve/log_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/messages.h"
#include "base/start_threads.h"

namespace starling {
namespace {

constexpr int kLookMs = 100;  // interval of checks whether to keep waiting for a stalled reader
constexpr std::chrono::seconds kFlushTime{1};
constexpr size_t kBlock = 64 << 10;  // bytes written at once

// An open file, closed at the end if owned.
struct LogFile {
  int number;
  bool own;
  LogFile(int n, bool o) : number(n), own(o) {}
  ~LogFile() {
    if (own) close(number);
  }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
};

}  // namespace

struct LogWriter::State {
  std::string labels;
  size_t most_bytes;
  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  Metrics* metrics;  // null once the log has ended
  std::shared_ptr<LogFile> file;
  std::deque<std::string> lines;
  size_t bytes = 0;  // of queued lines and of those being written
  bool closed = false, given_up = false, ended = false;

  void drop(size_t count) {
    if (metrics && count > 0) metrics->count("starling_log_dropped_total", labels, static_cast<double>(count));
  }

  // The thread's main loop.
  void run() {
    std::unique_lock lock(mutex);
    bool cut = false;  // the file ends with an incomplete line
    for (;;) {
      changed.wait(lock, [&] { return !lines.empty() || closed; });
      if (lines.empty() || given_up) break;
      std::string block = cut ? "\n" : "";
      std::vector<size_t> ends;
      size_t taken = 0;
      while (!lines.empty() && (ends.empty() || block.size() + lines.front().size() <= kBlock)) {
        taken += lines.front().size();
        block += lines.front();
        lines.pop_front();
        ends.push_back(block.size());
      }
      const size_t size = write(block, lock);
      cut = size > 0 ? block[size - 1] != '\n' : cut;
      drop(static_cast<size_t>(std::count_if(ends.begin(), ends.end(), [&](size_t end) { return end > size; })));
      bytes -= taken;
      changed.notify_all();
    }
    drop(lines.size());
    lines.clear();
    bytes = 0;
    ended = true;
    changed.notify_all();
  }

  // Writes a block and returns the number of bytes written. Waits for the reader unless the file is switched or somebody waits for the end.
  size_t write(std::string_view block, std::unique_lock<std::mutex>& lock) {
    std::string_view rest = block;
    for (;;) {
      const std::shared_ptr<LogFile> to = file;
      lock.unlock();
      const Written written = write_what_fits(to->number, rest, kLookMs);
      lock.lock();
      if (written != Written::stalled || given_up) return block.size() - rest.size();
      if (file != to && rest.size() < block.size()) return block.size() - rest.size();  // the rest would begin within a line
    }
  }
};

LogWriter::LogWriter(const std::string& name, Metrics& metrics, int file, bool own, size_t queue_bytes)
    : state_(std::make_shared<State>()) {
  State& s = *state_;
  s.labels = fmt::format("log=\"{}\"", name);
  s.metrics = &metrics;
  s.most_bytes = queue_bytes;
  s.file = std::make_shared<LogFile>(file, own);
  metrics.count("starling_log_dropped_total", s.labels, 0);
  start_thread("writing a log", [state = state_] { state->run(); }).detach();
}

LogWriter::~LogWriter() {
  State& s = *state_;
  {
    const std::lock_guard lock(s.mutex);
    s.closed = true;
  }
  s.changed.notify_all();
  std::unique_lock lock(s.mutex);
  s.changed.wait_for(lock, kFlushTime, [&] { return s.ended; });
  s.given_up = true;
  s.changed.wait_for(lock, kFlushTime, [&] { return s.ended; });
  s.metrics = nullptr;
}

void LogWriter::add(std::string line) {
  State& s = *state_;
  {
    const std::lock_guard lock(s.mutex);
    if (s.bytes > 0 && s.bytes + line.size() > s.most_bytes) return s.drop(1);
    s.bytes += line.size();
    s.lines.push_back(std::move(line));
  }
  s.changed.notify_all();
}

void LogWriter::use(int file, bool own) {
  const auto next = std::make_shared<LogFile>(file, own);
  const std::lock_guard lock(state_->mutex);
  state_->file = next;
}

bool LogWriter::flush() {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, kFlushTime, [&] { return state_->bytes == 0; });
}

}  // namespace starling
