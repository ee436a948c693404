// Checks that a request's head can be read in only one way. If a proxy and this server disagree about where a request ends, one client's
// bytes become another client's request (RFC 9112, section 11.2), so every ambiguous head is refused.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace starling {

// A request head as the HTTP library has split it.
struct RequestHead {
  std::string_view method, target, version;  // target: as it was sent, still percent-encoded
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  size_t bytes = 0;  // size of the whole head, including the empty line at its end
  // Where the target was received, if the other views also point into the original buffer, so that the bytes between them can be checked;
  // else null.
  const char* target_at = nullptr;
};

/// Returns what is wrong with the head and how to fix it, or "".
std::string head_error(const RequestHead& head);

}  // namespace starling
