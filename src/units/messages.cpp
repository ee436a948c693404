#include "units/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "base/utf8.h"
#include "document/sentences.h"

namespace starling {
namespace {

constexpr int kDeepest = 8;               // choices within choices
constexpr size_t kLongestArgument = 100;  // bytes of an argument that the translator sees

void as_it_is(std::string& out, UnitText::Place, std::string_view text) { out += text; }

// Returns the end of the braces that begin at `at`; npos if they are not closed. Quotes hide braces.
size_t braces_end(std::string_view text, size_t at) {
  int depth = 0;
  for (size_t i = at; i < text.size(); ++i) {
    if (text[i] == '\'' && i + 1 < text.size() && (text[i + 1] == '{' || text[i + 1] == '}')) {
      i = std::min(text.find('\'', i + 1), text.size());
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

// An apostrophe in front of a brace or a "#" would make it text, and so would one at the end of a piece, which they may follow; one behind
// a quoted piece would continue it. The typographic one has no meaning. Two in a row are one that is written so already.
void encode_icu(std::string& out, UnitText::Place place, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '{') end = std::min(braces_end(text, at), text.size());
    if (text[at] == '\'') end = std::min(text.find_first_not_of('\'', at), text.size());
    const bool alone = text[at] == '\'' && (end - at) % 2 == 1;
    const bool follows = at == 0 && out.size() > place.begin && out.back() == '\'';
    const bool quotes = alone && (follows || end == text.size() || std::string_view("{}#").find(text[end]) != std::string_view::npos);
    out += text.substr(at, end - at - quotes);
    if (quotes) out += "\u2019";
    at = end;
  }
}

std::string_view without_blanks(std::string_view text) { return trimmed(text, " \t\r\n"); }

// Returns where the cases of a choice begin in "{n, plural, one {...} other {...}}"; npos if it is none.
size_t cases_begin(std::string_view argument) {
  const size_t name = argument.find(','), type = name == std::string_view::npos ? name : argument.find(',', name + 1);
  if (type == std::string_view::npos) return type;
  const std::string_view word = without_blanks(argument.substr(name + 1, type - name - 1));
  return word == "plural" || word == "select" || word == "selectordinal" ? type + 1 : std::string_view::npos;
}

bool has_choice(std::string_view text) {
  for (size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    const size_t begin = cases_begin(text.substr(at, text.substr(at, 200).find('{', 1)));
    if (begin != std::string_view::npos) return braces_end(text, at) != std::string_view::npos;
  }
  return false;
}

// Returns the place of the sign in front of the letter of a key, "&" or "_"; npos if there is none, or several.
size_t mnemonic(std::string_view text) {
  size_t found = std::string_view::npos;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    const bool first = i == 0 || text[i - 1] == ' ';
    const bool sign = (text[i] == '&' && html_entity(text.substr(i)).length == 0) || (text[i] == '_' && first);
    if (!sign || !is_ascii_letter_or_digit(text[i + 1])) continue;
    if (found != std::string_view::npos) return std::string_view::npos;
    found = i;
  }
  return found;
}

}  // namespace

bool is_for_programs(std::string_view value) {
  bool space = false, sign = false, hump = false, letters = false;
  int slashes = 0;
  for (size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (c == '%') {  // as in a format of dates
      while (i + 1 < value.size() && std::string_view("-_^0123456789").find(value[i + 1]) != std::string_view::npos) ++i;
      if (i + 1 < value.size() && is_ascii_letter(value[i + 1])) ++i;
      continue;
    }
    space |= is_ascii_space(c);
    sign |= c == '_' || c == '\\' || c == '=';
    slashes += c == '/';
    hump |= i > 0 && c >= 'A' && c <= 'Z' && value[i - 1] >= 'a' && value[i - 1] <= 'z';
    letters |= is_ascii_letter(c) || static_cast<unsigned char>(c) >= 0x80;
  }
  return !letters || (!space && (sign || hump || slashes > 1 || value.starts_with("/") || value.starts_with(":") ||
                                 value.starts_with("@") || value.starts_with("#")));
}

std::string with_underscore(std::string language) {
  std::replace(language.begin(), language.end(), '-', '_');
  return language;
}

size_t append_escaped_unit(std::string& out, std::string_view text) {
  const auto unit = [&](size_t at) -> std::optional<char32_t> {
    if (at + 6 > text.size() || text[at] != '\\' || (text[at + 1] | 0x20) != 'u') return std::nullopt;
    char32_t value = 0;
    for (size_t i = at + 2; i < at + 6; ++i) {
      const char c = ascii_lower(text[i]);
      if (!is_ascii_digit(c) && (c < 'a' || c > 'f')) return std::nullopt;
      value = value * 16 + static_cast<char32_t>(is_ascii_digit(c) ? c - '0' : c - 'a' + 10);
    }
    return value;
  };
  const auto first = unit(0);
  if (!first) return 0;
  const auto second = *first >= 0xD800 && *first < 0xDC00 ? unit(6) : std::nullopt;
  if (second && *second >= 0xDC00 && *second < 0xE000) {
    append_utf8(out, 0x10000 + ((*first - 0xD800) << 10) + (*second - 0xDC00));
    return 12;
  }
  append_utf8(out, *first >= 0xD800 && *first < 0xE000 ? 0xFFFD : *first);
  return 6;
}

bool append_escape(std::string& out, char c) {
  constexpr std::string_view kEscaped = "\"\\\n\r\t", kLetters = "\"\\nrt";
  const size_t known = kEscaped.find(c);
  if (known == kEscaped.npos) return false;
  out += {'\\', kLetters[known]};
  return true;
}

void append_ascii(std::string& out, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto [c, length] = decode_utf8_at(text.substr(at));
    if (c < 0x80)
      out += text[at];
    else if (c < 0x10000)
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    else
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((static_cast<uint32_t>(c) - 0x10000) >> 10),
                         0xDC00 + ((static_cast<uint32_t>(c) - 0x10000) & 0x3FF));
    at += static_cast<size_t>(std::max(length, 1));
  }
}

Fragments MessageFile::message(std::string_view value, const Syntax& syntax) {
  if (!has_letter(value)) return {};
  if (!syntax.icu || !has_choice(value)) return add_plain(value, syntax);
  UnitText unit = read_icu(value, false, 0);
  if (!unit.has_words() && !unit.has_nested()) return {};
  return {{"", add_icu_unit(std::move(unit))}};
}

Fragments MessageFile::add_plain(std::string_view value, const Syntax& syntax) {
  const size_t sign = syntax.mnemonics ? mnemonic(value) : std::string_view::npos;
  std::string text(value);
  if (sign != std::string_view::npos) text.erase(sign, 1);
  if (is_for_programs(text)) return {};
  UnitText unit;
  const bool tags = text.find('<') != std::string::npos;
  if (tags)
    unit.add_html(text, as_it_is, text.find('&') != std::string::npos && text.find(';') != std::string::npos);
  else
    unit.add_text(text);
  if (!unit.has_words()) return {};
  return {{sign == std::string_view::npos ? "" : std::string(1, value[sign]),
           add_unit(std::move(unit), SentenceEnds::marks_and_lines, as_it_is)}};
}

size_t MessageFile::add_icu_unit(UnitText unit) { return add_unit(std::move(unit), SentenceEnds::marks_and_lines, encode_icu); }

// `counts`: within a case of a plural, where "#" is the number.
UnitText MessageFile::read_icu(std::string_view text, bool counts, int depth) {
  UnitText unit;
  size_t begin = 0;
  bool closed = true;                                                         // braces are
  const char* number = text.find('2') == std::string_view::npos ? "2" : "#";  // a number is what translators know
  const auto add_text = [&](size_t end) {
    unit.add_html(text.substr(begin, end - begin), as_it_is, false);
    begin = end;
  };
  for (size_t at = 0; at < text.size();) {
    const bool quoted = text[at] == '\'' && at + 1 < text.size() && (text[at + 1] == '{' || text[at + 1] == '}' || text[at + 1] == '#');
    size_t end = at;
    if (quoted) end = std::min(text.find('\'', at + 1), text.size() - 1) + 1;
    if (text[at] == '{' && closed) end = braces_end(text, at);
    closed = closed && end != std::string_view::npos;
    if (counts && text[at] == '#') end = at + 1;
    if (end == std::string_view::npos || end == at) {
      ++at;
      continue;
    }
    add_text(at);
    const std::string_view whole = text.substr(at, end - at);
    if (text[at] == '{')
      add_argument(unit, whole, depth);
    else if (quoted)
      unit.add_single(std::string(whole));
    else
      unit.add_kept("#", number);
    at = begin = end;
  }
  add_text(text.size());
  return unit;
}

void MessageFile::add_argument(UnitText& unit, std::string_view argument, int depth) {
  const size_t cases = cases_begin(argument);
  if (cases == std::string_view::npos || depth == kDeepest) {
    if (argument.size() <= kLongestArgument) return unit.add_text(argument);
    return unit.add_single(std::string(argument));
  }
  const bool counts = argument.substr(0, cases).find("select,") == std::string_view::npos;
  const bool plural = counts && argument.substr(0, cases).find("selectordinal") == std::string_view::npos;
  Fragments fragments;
  std::vector<std::string> there;  // names of branches
  std::optional<Fragment> other;   // the text of the branch of that name
  std::string_view between = " ";  // before its name
  size_t done = 0;
  for (size_t at = argument.find('{', cases); at < argument.size(); at = argument.find('{', at)) {
    const size_t end = braces_end(argument, at);
    if (end == std::string_view::npos) break;
    const std::string_view inner = argument.substr(at + 1, end - at - 2), head = argument.substr(done, at - done);
    UnitText text = read_icu(inner, counts, depth + 1);
    fragments.push_back({std::string(argument.substr(done, at + 1 - done))});
    Fragment content;
    if (text.has_words() || text.has_nested())
      content.unit = add_icu_unit(std::move(text));
    else
      content.bytes = inner;
    const std::string_view blanks = head.substr(std::min<size_t>(1, head.size())), name = without_blanks(blanks);
    there.emplace_back(name.substr(name.find_last_of(" \t\r\n,") + 1));
    if (there.back() == "other") other = content, between = blanks.substr(0, blanks.find_first_not_of(" \t\r\n"));
    fragments.push_back(std::move(content));
    done = end - 1;
    at = end;
  }
  if (plural && other && there.size() > 1) {
    for (const std::string_view category : missing_categories(categories_, there)) {
      fragments.push_back({fmt::format("}}{}{} {{", between, category)});
      fragments.push_back(*other);
    }
  }
  fragments.push_back({std::string(argument.substr(done))});
  unit.add_single(std::move(fragments));
}

}  // namespace starling
