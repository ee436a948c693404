// Writes the lines of a log in a separate thread, so that adding a line never blocks. Lines that the log's reader does not fetch in time,
// or that do not fit on a full disk, are dropped and counted in the metrics.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "batching/metrics.h"

namespace starling {

class LogWriter {
 public:
  // Writes to an open file, and closes it at the end if `own`. `name` identifies the log in the metrics, which must outlive it. At most
  // `queue_bytes` are queued, or one line that is longer. Throws ResourceError if the system gives no thread.
  LogWriter(const std::string& name, Metrics& metrics, int file, bool own, size_t queue_bytes = kQueueBytes);
  // Writes what is queued, for at most a second.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Adds a line, including its newline. Thread-safe.
  void add(std::string line);
  // Switches to another file for new and queued lines.
  void use(int file, bool own);
  // Waits until everything is written or dropped, at most a second; returns false if something is still queued.
  bool flush();

  static constexpr size_t kQueueBytes = 4 << 20;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread, which may hang in the system when the server ends
};

}  // namespace starling
