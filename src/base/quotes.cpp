#include "base/quotes.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace starling {
namespace {

// Whether a terminal would do something else with it than show it: controls, and marks that turn the direction of what follows.
bool is_unsafe(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200E && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

std::string escaped(std::string_view text, size_t most, bool lines = false) {
  std::string out;
  size_t at = 0;
  while (at < text.size() && out.size() < most) {
    const DecodedCodePoint c = decode_utf8_at(text.substr(at));
    const auto bytes = static_cast<size_t>(c.length);
    const size_t n = bytes == 0 ? 1 : bytes;
    if (bytes > 0 && (!is_unsafe(c.value) || (lines && (c.value == '\n' || c.value == '\t'))))
      out += text.substr(at, n);
    else
      for (const char byte : text.substr(at, n)) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    at += n;
  }
  return at < text.size() ? out + "..." : out;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, 200); }
std::string without_controls(std::string_view text) { return escaped(text, std::string_view::npos, true); }
std::string in_quotes(std::string_view text) { return "'" + escaped(text, 79) + "'"; }

std::string with_page_data(std::string_view page, std::string_view json) {
  constexpr std::string_view kMark = "/*REPORT*/";
  std::string data;
  for (const char c : json) data += c == '<' ? "\\u003c" : std::string(1, c);  // no "</script>" may appear
  std::string whole(page);
  return whole.replace(whole.find(kMark), kMark.size(), data);
}

}  // namespace starling
