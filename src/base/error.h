// Errors and checks. Every message says what is wrong, where, and how to mend it; the three places that catch are
// listed in docs/explanation/architecture.md. CHECK stays on in release builds.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace starling {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The user's configuration or command line is wrong; the message ends with the fix.
struct ConfigError : Error {
  using Error::Error;
};
// Input data is wrong; the message begins with file:line and says what was found.
struct DataError : Error {
  using Error::Error;
};
// The operating system refused a file operation; the message names the path and the reason.
struct IoError : Error {
  using Error::Error;
};
// Another rank of a distributed run failed or missed its deadline; the message names the rank, the host, the operation and how long this
// rank waited.
struct PeerError : Error {
  using Error::Error;
};
// The loss or the gradient of an update is not finite; the message names the update and possible remedies.
struct DivergedError : Error {
  using Error::Error;
};
// A CHECK failed: a defect in Starling, never in the user's input.
struct InternalError : Error {
  using Error::Error;
};

namespace detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);
}

}  // namespace starling

// CHECK(a == b, "rows {} against {}", a, b)
#define CHECK(condition, ...)                                                                          \
  do {                                                                                                 \
    if (!(condition)) [[unlikely]]                                                                     \
      ::starling::detail::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)
