// The access log: one line of JSON per request with client, path, duration and status. Texts are logged only on request.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "serve/log_writer.h"

namespace starling {

class AccessLog {
 public:
  // Appends to a file; "-": standard output; "": nowhere. Throws IoError if the file cannot be opened. Lines that cannot be written are
  // counted in the metrics, which must outlive the log.
  AccessLog(const std::string& path, Metrics& metrics);
  bool on() const { return writer_.has_value(); }
  // Never blocks.
  void write(const nlohmann::ordered_json& entry);
  // Opens the file again, after it was moved away.
  void reopen();
  // Waits until everything is written, at most a second.
  void flush();

 private:
  int open() const;
  std::string path_;
  std::optional<LogWriter> writer_;
};

// Returns the current time in the form 2026-11-22T14:05:00.123Z.
std::string log_time();

}  // namespace starling
