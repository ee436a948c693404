#include "units/json_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/quotes.h"
#include "units/messages.h"

namespace starling {

void JsonCursor::skip_blanks() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
}

void JsonCursor::refuse(size_t at, const std::string& why) const {
  refuse_(at, why);
  std::abort();  // it has thrown
}

void JsonCursor::fail(const char* expected) const {
  if (at_ >= text_.size()) refuse(at_, fmt::format("the JSON ends, and {} should follow", expected));
  const size_t end = text_.find_first_of(" \n", at_) == at_ ? at_ + 1 : std::min(at_ + 10, text_.find_first_of("\r\n", at_));
  refuse(at_, fmt::format("{} should stand here in JSON, not \"{}\"", expected, printable(text_.substr(at_, end - at_))));
}

void JsonCursor::check_depth(size_t open) const {
  constexpr size_t kDeepest = 1000;  // containers within each other
  if (open == kDeepest) refuse(at_, fmt::format("this is deeper than {} levels", kDeepest));
}

void JsonCursor::expect(char c, const char* what) {
  skip_blanks();
  if (here() != c || at_ >= text_.size()) fail(what);
  ++at_;
}

std::string JsonCursor::read_string() {
  std::string value;
  const size_t begin = at_++;
  while (here() != '"') {
    const char c = here();
    if (at_ >= text_.size()) refuse(begin, "this string of JSON is not closed");
    if (static_cast<unsigned char>(c) < ' ') fail("the end of the string");
    if (c != '\\') {
      value += c;
      ++at_;
      continue;
    }
    constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    const char escaped = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (const size_t known = kEscapes.find(escaped); escaped != 0 && known != kEscapes.npos) {
      value += kMeant[known];
      at_ += 2;
    } else if (const size_t size = append_escaped_unit(value, std::string_view(text_).substr(at_)); size > 0 && escaped == 'u') {
      at_ += size;
    } else {
      fail("an escape such as \\n or \\u00e9");
    }
  }
  ++at_;
  return value;
}

void JsonCursor::skip_word() {
  const size_t end = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
  const std::string_view word = std::string_view(text_).substr(at_, end - at_);
  const bool number =
      !word.empty() && word.find_first_not_of("0123456789+-.eE") == word.npos && word.find_first_of("0123456789") != word.npos;
  if (!number && word != "true" && word != "false" && word != "null") fail("a value");
  at_ = end;
}

void JsonCursor::skip_value() {
  std::string open;  // the brackets that close what is open
  for (;;) {
    skip_blanks();
    const char c = here();
    bool whole = true;
    if (c == '{' || c == '[') {
      check_depth(open.size());
      open += c == '{' ? '}' : ']';
      ++at_;
      skip_blanks();
      whole = here() == open.back();
      if (whole) ++at_, open.pop_back();
    } else if (c == '"') {
      read_string();
    } else {
      skip_word();
    }
    while (whole && !open.empty()) {
      skip_blanks();
      if (here() == ',') break;
      if (here() != open.back()) fail(open.back() == '}' ? "\",\" or \"}\"" : "\",\" or \"]\"");
      ++at_, open.pop_back();
    }
    if (open.empty()) return;
    at_ += whole;  // the comma
    if (open.back() != '}') continue;
    skip_blanks();
    if (here() != '"') fail("a key in quotes");
    read_string();
    expect(':', "\":\"");
  }
}

void JsonCursor::read_object(const std::function<void(const std::string& key, size_t key_begin)>& see) {
  expect('{', "\"{\"");
  skip_blanks();
  if (here() == '}') return void(++at_);
  for (;;) {
    skip_blanks();
    if (here() != '"') fail("a key in quotes");
    const size_t begin = at_;
    const std::string key = read_string();
    expect(':', "\":\"");
    skip_blanks();
    see(key, begin);
    skip_blanks();
    if (here() == '}') return void(++at_);
    expect(',', "\",\" or \"}\"");
  }
}

void append_json_string(std::string& out, std::string_view value, bool ascii) {
  std::string escaped;
  for (const char c : value) {
    if (append_escape(escaped, c)) continue;
    if (static_cast<unsigned char>(c) < ' ')
      escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      escaped += c;
  }
  out += '"';
  ascii ? append_ascii(out, escaped) : void(out += escaped);
  out += '"';
}

}  // namespace starling
