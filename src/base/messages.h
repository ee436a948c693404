// Messages to people, as opposed to results. A message may be lost: a full device, or a reader that has gone or stopped reading, is no
// reason to end the program or to wait for long. Results are written elsewhere, where a failed write is an error.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/quotes.h"

namespace starling {

enum class Written : uint8_t { all, stalled, failed };

/// Writes as much of a text to a file, pipe, terminal or socket as it accepts without a pause longer than `patience_ms` milliseconds, and
/// leaves the unwritten rest in `text`. Neither raises SIGPIPE nor throws.
Written write_what_fits(int file, std::string_view& text, int patience_ms) noexcept;

/// A stream of messages to one file, for all threads.
class Messages {
 public:
  /// Writes to an open file, which the caller continues to own. Waits up to `patience_ms` milliseconds for a reader that has stalled, and
  /// from then on not at all until it reads again.
  explicit Messages(int file, int patience_ms = 1000) : file_(file), patience_ms_(patience_ms) {}

  /// Writes the text, or as much of it as possible, from any thread. Returns false if some of it was lost; never throws.
  bool write(std::string_view text) noexcept;

 private:
  bool write_all(std::string_view text) noexcept;

  const int file_, patience_ms_;
  std::mutex mutex_;  // keeps the texts of several threads apart
  bool stalled_ = false, cut_ = false;
};

/// Writes a text to standard error through Messages, as it is; never throws.
void tell(std::string_view text) noexcept;

/// Formats a message and writes it to standard error, with what a terminal would not merely show escaped; adds no newline and never throws.
template <class... Args>
void tell(fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    tell(std::string_view(without_controls(fmt::format(format, std::forward<Args>(args)...))));
  } catch (...) {  // out of memory: the message is lost
  }
}

}  // namespace starling
