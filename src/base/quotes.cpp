#include "base/quotes.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace starling {

std::string in_quotes(std::string_view text) {
  constexpr size_t longest = 80;
  std::string out = "'";
  size_t at = 0;
  while (at < text.size() && out.size() < longest) {
    const size_t n = static_cast<size_t>(decode_utf8_at(text.substr(at)).length);
    const unsigned c = static_cast<unsigned char>(text[at]);
    if (n == 0 || c < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", c);
      ++at;
    } else {
      out += text.substr(at, n);
      at += n;
    }
  }
  return out + (at < text.size() ? "...'" : "'");
}

}  // namespace starling
