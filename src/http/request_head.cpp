#include "http/request_head.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"

namespace starling {
namespace {

// Whether the text is a token of RFC 9110, section 5.6.2.
bool is_token(std::string_view text) {
  const auto fine = [](char c) {
    return is_ascii_digit(c) || is_ascii_letter(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), fine);
}

bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F; }

bool same_name(std::string_view a, std::string_view lower) {
  const auto same = [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x + 32 : x) == y; };
  return a.size() == lower.size() && std::equal(a.begin(), a.end(), lower.begin(), same);
}

// Returns the beginning of what a client sent, made printable for a message.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 40)) out += is_control(c) || c == '\t' || static_cast<unsigned char>(c) > 0x7E ? '?' : c;
  return out;
}

// Whether the parts of the head lie as they were received. The library overwrites blanks, colons and line ends with zeros, so the distances
// between its views reveal what lay between them: a line that did not end with CR and LF, a continued line, or bytes after a NUL, which the
// library does not see.
bool lies_as_it_came(const RequestHead& head) {
  const char* const begin = head.method.data();
  if (head.target_at != begin + head.method.size() + 1) return false;
  if (head.version.data() != head.target_at + head.target.size() + 1) return false;
  const char* line = head.version.data() + head.version.size() + 2;
  for (const auto& [name, value] : head.fields) {
    if (name.data() != line || value.data() < line + name.size() + 1) return false;
    line = value.data() + value.size() + 2;
  }
  return line + 2 == begin + head.bytes;
}

std::string request_line_error(const RequestHead& head) {
  if (!is_token(head.method)) return fmt::format("the method '{}' is not an HTTP token; send GET or POST", shown(head.method));
  if (head.version != "HTTP/1.1" && head.version != "HTTP/1.0")
    return fmt::format("the version '{}' is not supported; send HTTP/1.1", shown(head.version));
  const auto wrong = [](char c) { return is_control(c) || c == ' ' || c == '\t'; };
  if (head.target.empty() || std::any_of(head.target.begin(), head.target.end(), wrong))
    return "the request's target has blanks or control characters; send them percent-encoded";
  if (head.target.substr(0, head.target.find('?')).find("%00") != std::string_view::npos)
    return "the request's path has a NUL (%00); leave it out";
  return "";
}

}  // namespace

std::string head_error(const RequestHead& head) {
  if (std::string wrong = request_line_error(head); !wrong.empty()) return wrong;
  int hosts = 0, lengths = 0, codings = 0;
  for (const auto& [name, value] : head.fields) {
    if (!is_token(name))
      return fmt::format("the header name '{}' is not an HTTP token; leave out blanks and other characters", shown(name));
    if (std::any_of(value.begin(), value.end(), is_control))
      return fmt::format("the value of {} has control characters; leave them out", shown(name));
    if (same_name(name, "host")) {
      ++hosts;
      if (value.find_first_of(" \t,/@\\") != std::string_view::npos)
        return fmt::format("'{}' is not a valid host; send Host: NAME:PORT", shown(value));
    } else if (same_name(name, "content-length")) {
      ++lengths;
      if (value.empty() || !std::all_of(value.begin(), value.end(), is_ascii_digit))
        return fmt::format("the Content-Length '{}' is not a number; send digits only", shown(value));
    } else if (same_name(name, "transfer-encoding")) {
      ++codings;
      if (!same_name(value, "chunked")) return fmt::format("the Transfer-Encoding '{}' is not supported; send chunked", shown(value));
    }
  }
  if (hosts > 1 || (hosts == 0 && head.version == "HTTP/1.1")) return fmt::format("there are {} Host headers; send one", hosts);
  if (lengths > 1) return fmt::format("there are {} Content-Length headers; send one", lengths);
  if (codings > 1) return fmt::format("there are {} Transfer-Encoding headers; send one", codings);
  if (codings > 0 && lengths > 0) return "there are both Transfer-Encoding and Content-Length; send one of them";
  if (codings > 0 && head.version != "HTTP/1.1") return "HTTP/1.0 has no Transfer-Encoding; send Content-Length";
  if (head.target_at && !lies_as_it_came(head))
    return "a line of the request does not end with CR and LF, is continued on the next one, or has a NUL; send each header as one such "
           "line";
  return "";
}

}  // namespace starling
