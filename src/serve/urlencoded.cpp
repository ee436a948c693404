#include "serve/urlencoded.h"

#include <microhttpd.h>

#include <algorithm>

namespace starling {

// The library's own parser of these refuses a value with "=" in it, as curl -d sends it.
void take_urlencoded(std::string_view body, size_t most, NamedValues& fields) {
  const auto unescaped = [](std::string_view text) {
    std::string value(text);
    std::replace(value.begin(), value.end(), '+', ' ');
    value.resize(MHD_http_unescape(value.data()));
    return value;
  };
  while (!body.empty() && fields.size() < most) {
    const std::string_view field = body.substr(0, body.find('&'));
    body.remove_prefix(std::min(field.size() + 1, body.size()));
    const size_t equals = std::min(field.find('='), field.size());
    if (!field.empty())
      fields.emplace_back(unescaped(field.substr(0, equals)), unescaped(field.substr(std::min(equals + 1, field.size()))));
  }
}

}  // namespace starling
