#include "units/line_messages.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/utf8.h"

namespace starling {
namespace {

bool is_line_end(char c) { return c == '\n' || c == '\r'; }

// In MessageFormat, which replaces {0}, an apostrophe is written twice.
bool doubles_apostrophes(std::string_view value) {
  for (size_t at = value.find('{'); at != value.npos; at = value.find('{', at + 1))
    if (at + 1 < value.size() && is_ascii_digit(value[at + 1])) return true;
  return false;
}

// Whether apostrophes quote braces in MessageFormat, as in '{'. Within a word, or alone, one was not meant so.
bool has_quoted_braces(std::string_view value) {
  size_t brace = value.find_first_of("{}");
  for (size_t at = value.find('\''); at < value.size(); at = value.find('\'', at)) {
    if (brace != value.npos && brace < at) brace = value.find_first_of("{}", at);
    if (brace == value.npos) return false;
    if (value.substr(at).starts_with("''")) {
      at += 2;
      continue;
    }
    const size_t end = value.find('\'', at + 1);
    if (brace > end) {
      at = is_ascii_letter_or_digit(value[at == 0 ? 0 : at - 1]) ? at + 1 : end + 1;
      continue;
    }
    if (brace == at + 1) return true;
    if (end != value.npos && (at == 0 || is_ascii_space(value[at - 1]))) return true;
    ++at;
  }
  return false;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t next = std::min(text.find(from, at), text.size());
    out += text.substr(at, next - at);
    if (next < text.size()) out += to;
    at = next + from.size();
  }
  return out;
}

}  // namespace

Properties::Properties(std::string text, const Languages& languages)
    : MessageFile(std::move(text), true, languages.target),
      latin1_(invalid_utf8_offset(text_).has_value()),
      ascii_(latin1_ || std::none_of(text_.begin(), text_.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) {
  check();
}

void Properties::read() {
  for (size_t at = byte_order_mark(text_); at < text_.size();) {
    while (at < text_.size() && is_ascii_space(text_[at])) ++at;
    const bool comment = at < text_.size() && (text_[at] == '#' || text_[at] == '!');
    size_t end = at;  // of the line; a backslash continues it
    while (end < text_.size() && !is_line_end(text_[end])) {
      end += !comment && text_[end] == '\\' ? 2 : 1;
      if (end <= text_.size() && end >= 2 && !comment && text_[end - 2] == '\\' && text_[end - 1] == '\r' && end < text_.size() &&
          text_[end] == '\n')
        ++end;
    }
    end = std::min(end, text_.size());
    if (!comment) add_value(at, end);
    end_group();
    at = end;
  }
}

void Properties::add_value(size_t begin, size_t end) {
  size_t at = begin;
  for (; at < end && text_[at] != '=' && text_[at] != ':' && !is_ascii_space(text_[at]); ++at) at += text_[at] == '\\';
  while (at < end && (text_[at] == ' ' || text_[at] == '\t')) ++at;
  if (at < end && (text_[at] == '=' || text_[at] == ':')) ++at;
  while (at < end && (text_[at] == ' ' || text_[at] == '\t')) ++at;
  if (at >= end) return;
  std::string value = value_of(std::string_view(text_).substr(at, end - at));
  const bool doubled = doubles_apostrophes(value);
  if (doubled && has_quoted_braces(value)) return;  // a translation could not tell them from other apostrophes
  if (doubled) value = replaced(value, "''", "'");
  Fragments fragments = message(value, {});
  if (fragments.empty()) return;
  replace_value(at, end, std::move(fragments), [doubled, ascii = ascii_](std::string& out, const std::string& text) {
    std::string escaped;
    for (const char c : doubled ? replaced(text, "'", "''") : text) {
      if (c == ' ' && escaped.empty())
        escaped += "\\ ";
      else if (c == '"' || !append_escape(escaped, c))  // a value has no quotes around it
        escaped += c;
    }
    ascii ? append_ascii(out, escaped) : void(out += escaped);
  });
}

std::string Properties::value_of(std::string_view bytes) const {
  std::string value;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (c != '\\' || i + 1 == bytes.size()) {
      latin1_ ? append_utf8(value, static_cast<unsigned char>(c)) : value.push_back(c);
      continue;
    }
    if (const size_t size = append_escaped_unit(value, bytes.substr(i)); size > 0) {
      i += size - 1;
      continue;
    }
    const char escaped = bytes[++i];
    if (is_line_end(escaped)) {
      if (escaped == '\r' && i + 1 < bytes.size() && bytes[i + 1] == '\n') ++i;
      while (i + 1 < bytes.size() && (bytes[i + 1] == ' ' || bytes[i + 1] == '\t')) ++i;
    } else {
      constexpr std::string_view kEscapes = "ntrf", kMeant = "\n\t\r\f";
      const size_t known = kEscapes.find(escaped);
      value += known == kEscapes.npos ? escaped : kMeant[known];
    }
  }
  return value;
}

AppleStrings::AppleStrings(std::string text, const Languages& languages) : MessageFile(std::move(text), true, languages.target) {
  require_utf8();
  check();
}

void AppleStrings::read() {
  for (size_t at = skip_blanks(byte_order_mark(text_)); at < text_.size(); at = skip_blanks(at)) {
    std::string key, value;
    at = skip_blanks(read_word(at, key));
    const bool alone = at < text_.size() && text_[at] == ';';  // the key is the value too
    if (!alone) {
      if (at >= text_.size() || text_[at] != '=') refuse(at, "expected \"=\" after the key");
      const size_t begin = skip_blanks(at + 1), end = read_word(begin, value);
      at = skip_blanks(end);
      if (at >= text_.size() || text_[at] != ';') refuse(at, "expected \";\" after the value");
      if (Fragments fragments = message(value, {}); !fragments.empty() && text_[begin] == '"')
        replace_value(begin, end, std::move(fragments), [](std::string& out, const std::string& written) {
          out += '"';
          for (const char c : written)
            if (!append_escape(out, c)) out += c;
          out += '"';
        });
    }
    end_group();
    ++at;
  }
}

// Skips white space and comments.
size_t AppleStrings::skip_blanks(size_t at) const {
  while (at < text_.size()) {
    const std::string_view rest = std::string_view(text_).substr(at);
    if (is_ascii_space(rest[0])) {
      ++at;
    } else if (rest.starts_with("/*")) {
      const size_t end = text_.find("*/", at + 2);
      if (end == std::string::npos) refuse(at, "this comment is not closed");
      at = end + 2;
    } else if (rest.starts_with("//")) {
      at = std::min(text_.find('\n', at), text_.size());
    } else {
      return at;
    }
  }
  return text_.size();
}

// Reads a text in quotes, or a word, and returns its end.
size_t AppleStrings::read_word(size_t at, std::string& word) const {
  if (at < text_.size() && text_[at] != '"') {
    size_t end = at;
    while (end < text_.size() &&
           (is_ascii_letter_or_digit(text_[end]) || std::string_view("_.-/:$").find(text_[end]) != std::string_view::npos))
      ++end;
    if (end == at) refuse(at, "expected a key in quotes here");
    word = text_.substr(at, end - at);
    return end;
  }
  for (size_t i = at + 1; i < text_.size(); ++i) {
    if (text_[i] == '"') return i + 1;
    if (text_[i] != '\\' || i + 1 == text_.size()) {
      word += text_[i];
      continue;
    }
    if (const size_t size = append_escaped_unit(word, std::string_view(text_).substr(i)); size > 0) {
      i += size - 1;
      continue;
    }
    constexpr std::string_view kEscapes = "ntr", kMeant = "\n\t\r";
    const size_t known = kEscapes.find(text_[++i]);
    word += known == kEscapes.npos ? text_[i] : kMeant[known];
  }
  refuse(at, "this text is not closed");
}

}  // namespace starling
