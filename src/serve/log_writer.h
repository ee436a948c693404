// Lines of a log, written by a thread of their own, so that whoever has a line never waits. What a log's reader does not fetch in time and
// what a full disk does not take is dropped, and counted in the metrics.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "serve/metrics.h"

namespace starling {

class LogWriter {
 public:
  // Writes to an open file, which it closes at the end if it is its own. `name`: of the log in the metrics, which must outlive it.
  // At most `queue_bytes` wait, or one line that is longer. ResourceError when the system gives no thread.
  LogWriter(const std::string& name, Metrics& metrics, int file, bool own, size_t queue_bytes = kQueueBytes);
  // Writes what waits, for a second at most.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // A line with its newline. From any thread.
  void add(std::string line);
  // What comes, and what still waits, goes to this file.
  void use(int file, bool own);
  // Waits until all is written or dropped, for a second at most; false: not all is.
  bool flush();

  static constexpr size_t kQueueBytes = 4 << 20;

 private:
  struct State;
  std::shared_ptr<State> state_;  // the thread's, too, which may hang in the system when the server ends
};

}  // namespace starling
