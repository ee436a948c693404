// Whether a request's head can be read in one way only. A proxy and this server that disagree about where a request ends take one client's
// bytes for another client's request (RFC 9112, section 11.2); whatever could be read in two ways is therefore refused.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace starling {

// A head as the HTTP library has cut it.
struct RequestHead {
  std::string_view method, target, version;  // the target as it was sent, still percent-encoded
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  size_t bytes = 0;  // of the whole head, with the empty line at its end
  // Where the target was; the other views then lie where they came, too, so that what lies between them can be judged. Null: they do not.
  const char* target_at = nullptr;
};

/// What is wrong with the head, ending with the fix; "" when nothing is.
std::string head_error(const RequestHead& head);

}  // namespace starling
