// One line of JSON for each request: who, what, how long, how it ended. Texts only where they are asked for.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "serve/log_writer.h"

namespace starling {

class AccessLog {
 public:
  // To a file, which lines are added to; "-": standard output; "": nowhere. IoError when it cannot be opened. What it does not take is
  // counted in the metrics, which must outlive it.
  AccessLog(const std::string& path, Metrics& metrics);
  bool on() const { return writer_.has_value(); }
  // Never waits.
  void write(const nlohmann::ordered_json& entry);
  // Opens the file again: after it was moved away.
  void reopen();
  // Waits until all is written, for a second at most.
  void flush();

 private:
  int open() const;
  std::string path_;
  std::optional<LogWriter> writer_;
};

// Now, as 2026-11-22T14:05:00.123Z.
std::string log_time();

}  // namespace starling
