#include "http/forms.h"

#include <fmt/format.h>
#include <microhttpd.h>
#include <strings.h>

#include <algorithm>
#include <optional>

#include "base/ascii.h"

namespace starling {
namespace {

std::string unescaped(std::string_view text) {
  std::string value(text);
  std::replace(value.begin(), value.end(), '+', ' ');
  value.resize(MHD_http_unescape(value.data()));
  return value;
}

void take_urlencoded(std::string_view body, size_t most, NamedValues& fields) {
  while (!body.empty() && fields.size() < most) {
    const std::string_view field = body.substr(0, body.find('&'));
    body.remove_prefix(std::min(field.size() + 1, body.size()));
    const size_t equals = std::min(field.find('='), field.size());
    if (!field.empty())
      fields.emplace_back(unescaped(field.substr(0, equals)), unescaped(field.substr(std::min(equals + 1, field.size()))));
  }
}

bool same_word(std::string_view a, std::string_view b) { return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0; }

// Removes a quoted value from `rest` and returns it. A backslash escapes only quotes and backslashes, because file names contain other
// ones.
std::string take_quoted(std::string_view& rest) {
  std::string value;
  size_t i = 1;
  for (; i < rest.size() && rest[i] != '"'; ++i) {
    if (rest[i] == '\\' && i + 1 < rest.size() && (rest[i + 1] == '"' || rest[i + 1] == '\\')) ++i;
    value += rest[i];
  }
  rest.remove_prefix(std::min(i + 1, rest.size()));
  return value;
}

// Returns a parameter of a header's value: word; name=value; name="value".
std::optional<std::string> parameter(std::string_view header, std::string_view name) {
  size_t end = header.find(';');
  while (end < header.size()) {
    std::string_view rest = header.substr(end + 1);
    const size_t equals = rest.find_first_of("=;");
    const bool found = equals < rest.size() && rest[equals] == '=' && same_word(trimmed(rest.substr(0, equals)), name);
    rest.remove_prefix(std::min(equals, rest.size()));
    if (!rest.empty() && rest.front() == '=')
      rest.remove_prefix(1), rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    std::string value;
    if (!rest.empty() && rest.front() == '"')
      value = take_quoted(rest);
    else
      value = trimmed(rest.substr(0, rest.find(';')));
    if (found) return value;
    end = rest.find(';');
    if (end < rest.size()) header = rest;
  }
  return std::nullopt;
}

// A line that separates two parts.
struct Delimiter {
  size_t begin, end;  // includes the line break before it, not the one after it; end is npos if there is none
  bool last;
};

Delimiter next_delimiter(std::string_view body, const std::string& boundary, size_t from) {
  const std::string line = "\r\n--" + boundary;
  for (;; from += 2) {
    // The first delimiter may be at the very beginning.
    if (from == 0 && body.starts_with(std::string_view(line).substr(2)))
      from = 0;
    else if ((from = body.find(line, from)) == std::string_view::npos)
      return {0, std::string_view::npos, false};
    const size_t begin = from;
    size_t end = begin + line.size() - (body[begin] == '\r' ? 0 : 2);
    if (body.substr(end).starts_with("--")) return {begin, end + 2, true};
    end = std::min(body.find_first_not_of(" \t", end), body.size());
    if (body.substr(end).starts_with("\r\n")) return {begin, end, false};  // otherwise it is text that begins like a delimiter
  }
}

// Returns a parameter of what a part is: its "name", or the "filename" of a file. Each of its headers begins with a line break.
std::optional<std::string> name_of_part(std::string_view headers, std::string_view which) {
  while (!headers.empty()) {
    headers.remove_prefix(2);
    const std::string_view line = headers.substr(0, headers.find("\r\n"));
    headers.remove_prefix(line.size());
    const size_t colon = line.find(':');
    if (colon < line.size() && same_word(trimmed(line.substr(0, colon)), "content-disposition"))
      return parameter(line.substr(colon + 1), which);
  }
  return std::nullopt;
}

std::string take_multipart(std::string_view body, const std::string& boundary, size_t most, NamedValues& fields, NamedValues& files) {
  Delimiter here = next_delimiter(body, boundary, 0);
  for (int number = 1; here.end != std::string_view::npos && !here.last && fields.size() < most; ++number) {
    const Delimiter next = next_delimiter(body, boundary, here.end);
    if (next.end == std::string_view::npos) break;
    const std::string_view part = body.substr(here.end, next.begin - here.end);
    const size_t blank = part.find("\r\n\r\n");
    const std::string_view headers = part.substr(0, std::min(blank, part.size()));
    const auto name = name_of_part(headers, "name");
    if (blank == std::string_view::npos || !name)
      return fmt::format(
          "part {} of the multipart form has no name; send Content-Disposition: form-data; name=\"...\" and an empty line before its value",
          number);
    fields.emplace_back(*name, part.substr(blank + 4));
    if (auto file = name_of_part(headers, "filename")) files.emplace_back(*name, std::move(*file));
    here = next;
  }
  if (here.last || fields.size() >= most) return "";
  return fmt::format("the multipart form does not end with a line --{}--; send it whole, with line breaks of CR and LF", boundary);
}

}  // namespace

std::string take_form(HttpRequest& request, size_t most) {
  const std::string type = request.content_type();
  if (type == "application/x-www-form-urlencoded") {
    take_urlencoded(std::exchange(request.body, {}), most, request.fields);
  } else if (type == "multipart/form-data") {
    const auto boundary = parameter(request.header("content-type"), "boundary");
    if (!boundary || boundary->empty())
      return "the multipart form has no boundary; send Content-Type: multipart/form-data; boundary=..., or an urlencoded form";
    return take_multipart(std::exchange(request.body, {}), *boundary, most, request.fields, request.files);
  }
  return "";
}

}  // namespace starling
