// What the program tells people beside its results. Such a message may be lost: that the device is full, or that its reader has gone or
// reads no more, is no reason to end, nor to wait for long. Results go elsewhere, where a write that fails is an error.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>

namespace starling {

enum class Written : uint8_t { all, stalled, failed };

/// Writes a text to a file, a pipe, a terminal or a socket, as much as it takes at once or within `patience_ms` milliseconds each time;
/// what is left in `text` is not written. Neither raises SIGPIPE nor throws.
Written write_what_fits(int file, std::string_view& text, int patience_ms) noexcept;

class Messages {
 public:
  /// Writes to an open file, which stays the caller's. A reader that has stopped is waited for `patience_ms` milliseconds, and then no more
  /// until it reads again.
  explicit Messages(int file, int patience_ms = 1000) : file_(file), patience_ms_(patience_ms) {}

  /// Writes the text, or what can be written of it, from any thread. False when some of it was lost; never throws.
  bool write(std::string_view text) noexcept;

 private:
  bool write_all(std::string_view text) noexcept;

  const int file_, patience_ms_;
  std::mutex mutex_;  // texts do not mix
  bool stalled_ = false, cut_ = false;
};

/// Writes a text to standard error by Messages; never throws.
void tell(std::string_view text) noexcept;

/// Formats a text, with its newline if it is to have one, and tells it; never throws.
template <class... Args>
void tell(fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    tell(std::string_view(fmt::format(format, std::forward<Args>(args)...)));
  } catch (...) {  // no memory for it: lost as well
  }
}

}  // namespace starling
