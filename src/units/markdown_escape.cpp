#include "units/markdown_escape.h"

#include <algorithm>

#include "base/ascii.h"
#include "document/html.h"

namespace starling {
namespace {

bool is_blank_or_end(char c) { return c == 0 || is_ascii_space(c); }
bool is_mark(char c) { return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~'); }

// Whether a line that begins with `rest` would begin a heading, a quote, an item or a rule; returns the byte that a backslash must precede.
size_t block_mark(std::string_view rest) {
  const auto next = [&](size_t i) { return i < rest.size() ? rest[i] : '\0'; };
  const char c = rest[0];
  size_t run = 0;
  while (next(run) == c) ++run;
  if (c == '#' && run <= 6 && is_blank_or_end(next(run))) return 0;
  if (c == '>' || c == '|' || (c == '~' && run >= 3)) return 0;
  if ((c == '-' || c == '+') && (is_blank_or_end(next(1)) || run >= 2)) return 0;
  if (c == '=' && rest.find_first_not_of("= \t") >= std::min(rest.find('\n'), rest.size())) return 0;
  size_t digits = 0;
  while (digits < 10 && is_ascii_digit(next(digits))) ++digits;
  if (digits > 0 && digits < 10 && (next(digits) == '.' || next(digits) == ')') && is_blank_or_end(next(digits + 1))) return digits;
  return std::string_view::npos;
}

// Whether a character within a line would have a meaning between two others. `ends`: the unit ends with the text; else 0 stands for what
// follows.
bool has_meaning(std::string_view rest, char before, bool ends, const MarkdownStyle& style) {
  const char c = rest[0], next = rest.size() > 1 ? rest[1] : ends ? ' ' : '\0';
  const auto is_letter = [](char x) { return is_ascii_letter_or_digit(x) || static_cast<unsigned char>(x) >= 0x80; };
  const bool apart = is_ascii_space(before) && is_ascii_space(next);
  switch (c) {
    case '\\':
      return next == 0 || next == '\n' || is_mark(next);
    case '`':
      return true;
    case '*':
      return !apart;
    case '_':
      return !apart && !(is_letter(before) && is_letter(next));
    case '~':
      return next == 0 || next == '~' || before == '~' || !(is_ascii_space(next) || is_ascii_digit(next));
    case '[':
    case ']':
      return !style.brackets;
    case '<':
      return next == 0 || next == '/' || next == '!' || next == '?' || is_ascii_letter(next);
    case '&':
      return next == 0 || html_entity(rest).length > 0;
    case '|':
      return style.kind == MarkdownLeaf::cell;
    case '$':
      return style.dollars;
    case '!':
      return style.links && next == 0;
    case '#':
      return style.kind == MarkdownLeaf::heading && (is_ascii_space(before) || before == '#') && rest.find_first_not_of("# ") == rest.npos;
    default:
      return false;
  }
}

}  // namespace

void append_markdown(std::string& out, UnitText::Place place, std::string_view text, const MarkdownStyle& style) {
  bool line_begins = out.size() == place.begin && style.at_line && style.kind != MarkdownLeaf::cell;
  size_t mark = std::string_view::npos;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest[0] == '\n') {
      while (!out.empty() && out.size() > place.begin && (out.back() == ' ' || out.back() == '\t')) out.pop_back();
      out += style.line_prefix;
      line_begins = true;
      continue;
    }
    if (line_begins && rest[0] != ' ' && rest[0] != '\t') {
      const size_t place = block_mark(rest);
      mark = place == std::string_view::npos ? place : i + place;
      line_begins = false;
    }
    if (line_begins) continue;  // spaces at the beginning of a line
    const char before = out.size() > place.begin ? out.back() : '\0';
    if (i == mark || has_meaning(rest, before, place.ends, style)) out += '\\';
    out += rest[0];
  }
}

}  // namespace starling
