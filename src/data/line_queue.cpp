#include "data/line_queue.h"

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <mutex>

#include "base/start_threads.h"
#include "data/line_reader.h"

namespace starling {

struct LineQueue::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> lines;
  int64_t count = 0;                        // lines so far
  uint64_t text_bytes = 0, file_bytes = 0;  // bytes of these lines, and bytes read, which run ahead and are compressed in archives
  bool done = false, abandoned = false;
  bool file = false;  // lines currently come from a file, not from a pipe or a terminal
  std::exception_ptr error;

  void read(const std::vector<std::string>& paths, size_t capacity) {
    std::exception_ptr failure;
    uint64_t before = 0;  // bytes of files already read
    try {
      for (const std::string& path : paths) {
        {
          std::error_code none;
          const std::lock_guard lock(mutex);
          file = std::filesystem::is_regular_file(path == "-" ? "/dev/stdin" : path, none);
          changed.notify_all();
        }
        LineReader reader(path);
        for (std::string_view line; reader.next(line);) {
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return lines.size() < capacity || abandoned; });
          if (abandoned) return;
          lines.emplace_back(line);
          ++count;
          text_bytes += line.size() + 1;
          file_bytes = before + reader.bytes_read();
          changed.notify_all();
        }
        before += reader.bytes_read();
      }
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    error = failure;
    done = true;
    changed.notify_all();
  }
};

LineQueue::LineQueue(std::vector<std::string> paths, size_t capacity) : shared_(std::make_shared<Shared>()) {
  start_thread("reading lines", [shared = shared_, paths = std::move(paths), capacity] { shared->read(paths, capacity); }).detach();
}

LineQueue::~LineQueue() {
  const std::lock_guard lock(shared_->mutex);
  shared_->abandoned = true;
  shared_->changed.notify_all();
}

std::vector<std::string> LineQueue::take(size_t most) {
  Shared& s = *shared_;
  std::unique_lock lock(s.mutex);
  s.changed.wait(lock, [&] { return !s.lines.empty() || s.done; });
  const auto enough = [&] { return s.lines.size() >= most || s.done; };
  if (s.file)
    s.changed.wait(lock, [&] { return enough() || !s.file; });
  else
    s.changed.wait_for(lock, std::chrono::milliseconds(3), enough);
  std::vector<std::string> taken;
  while (!s.lines.empty() && taken.size() < most) {
    taken.push_back(std::move(s.lines.front()));
    s.lines.pop_front();
  }
  if (taken.empty() && s.error) std::rethrow_exception(s.error);
  s.changed.notify_all();
  return taken;
}

int64_t LineQueue::expected_lines(uint64_t bytes) const {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->done) return shared_->count;
  const uint64_t read = std::min(shared_->text_bytes, shared_->file_bytes);
  if (read == 0 || read >= bytes) return 0;
  return std::llround(static_cast<double>(shared_->count) * static_cast<double>(bytes) / static_cast<double>(read));
}

}  // namespace starling
