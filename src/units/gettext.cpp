#include "units/gettext.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/error.h"
#include "base/quotes.h"
#include "base/utf8.h"
#include "document/placeholders.h"

namespace starling {
namespace {

constexpr size_t kMostTranslations = 100;  // of a message; no language has more than six

// Writes a text in quotes, each line in a line of its own.
void write_quoted(std::string& out, const std::string& text, const std::string& line_end) {
  const size_t line = text.find('\n');
  if (line != std::string::npos && line + 1 < text.size()) out += "\"\"" + line_end;
  out += '"';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n')
      out += i + 1 < text.size() ? "\\n\"" + line_end + "\"" : "\\n";
    else if (!append_escape(out, c))
      out += c;
  }
  out += '"';
}

// Returns the conversions of a text and how many percent signs it has, whatever their order.
std::string conversions_of(const std::string& text) {
  std::vector<std::string> found;
  for (const Range& r : find_placeholders(text)) found.push_back(text.substr(static_cast<size_t>(r.begin), static_cast<size_t>(r.count())));
  std::erase_if(found, [](const std::string& s) { return s[0] != '%' && s[0] != '{'; });
  std::sort(found.begin(), found.end());
  return fmt::format("{} {}", std::count(text.begin(), text.end(), '%'), fmt::join(found, " "));
}

// Whether a flag of a line such as "#, fuzzy, c-format" says that a text has conversions.
bool has_format_flag(std::string_view line) {
  for (size_t at = 2; at < line.size();) {
    const size_t end = std::min(line.find(',', at), line.size());
    const std::string_view flag = trimmed(line.substr(at, end - at), " \t\r");
    if (flag.ends_with("-format") && !flag.starts_with("no-")) return true;
    at = end + 1;
  }
  return false;
}

bool has_percent_argument(std::string_view text) { return text.find('%') != text.npos || text.find('{') != text.npos; }

}  // namespace

Gettext::Gettext(std::string text, const Languages& languages)
    : MessageFile(std::move(text), false, ""), languages_(languages), forms_(plural_forms_of(languages.target)) {
  if (text_.find("charset=CHARSET") == std::string::npos || text_.find("charset=CHARSET") > 10'000) require_utf8();
  line_end_ = text_.find("\r\n") == std::string::npos ? "\n" : "\r\n";
  check();
}

void Gettext::read() {
  forms_ = PluralForms(plural_forms_of(languages_.target));
  Entry entry;
  Value* value = nullptr;
  const auto finish = [&] {
    if (entry.has_id) add_entry(entry);
    end_group();
    entry = {};
    value = nullptr;
  };
  for (size_t line = byte_order_mark(text_); line < text_.size();) {
    const size_t next = std::min(text_.find('\n', line), text_.size() - 1) + 1;
    size_t end = next;
    while (end > line && is_ascii_space(text_[end - 1])) --end;
    size_t begin = line;
    while (begin < end && is_ascii_space(text_[begin])) ++begin;
    const std::string_view bytes = std::string_view(text_).substr(begin, end - begin);
    const bool begins =
        bytes.starts_with("#") || bytes.starts_with("msgid ") || bytes.starts_with("msgid\"") || bytes.starts_with("msgctxt");
    if (begins && !entry.translations.empty()) finish();
    if (bytes.starts_with("#|") && entry.begin == SIZE_MAX) entry.begin = line;
    if (bytes.starts_with("#,")) {
      entry.flags_end = end;
      entry.formats |= has_format_flag(bytes);
    } else if (!bytes.empty() && !bytes.starts_with("#")) {
      read_line(begin, end, entry, value);
    }
    line = next;
  }
  finish();
}

void Gettext::read_line(size_t line, size_t end, Entry& entry, Value*& value) {
  const std::string_view bytes = std::string_view(text_).substr(line, end - line);
  size_t at = line;
  if (bytes[0] != '"') {
    const std::string_view word = bytes.substr(0, bytes.find_first_of(" \t\""));
    if (word == "msgctxt") {
      value = &entry.context;
    } else if (word == "msgid" && !entry.has_id) {
      value = &entry.id;
      entry.has_id = true;
    } else if (word == "msgid_plural" && entry.has_id) {
      value = &entry.plural;
      entry.has_plural = true;
    } else if (word.starts_with("msgstr") && entry.has_id && entry.translations.size() < kMostTranslations) {
      value = &entry.translations.emplace_back(line, Value()).second;
    } else {
      refuse(line, fmt::format("\"{}\" is not allowed here in a gettext catalogue", printable(bytes.substr(0, 40))));
    }
    if (entry.begin == SIZE_MAX) entry.begin = line;
    at += word.size();
    while (at < end && is_ascii_space(text_[at])) ++at;
  }
  if (value == nullptr || at >= end || text_[at] != '"' || end - at < 2 || text_[end - 1] != '"')
    refuse(line, "expected a text in quotes here, as in every gettext catalogue");
  read_quoted(at, end, *value);
}

void Gettext::read_quoted(size_t at, size_t end, Value& value) const {
  if (value.begin == SIZE_MAX) value.begin = at;
  value.end = end;
  for (size_t i = at + 1; i + 1 < end; ++i) {
    const char c = text_[i];
    if (c == '"') refuse(i, "this quote ends the text before the end of its line; write \\\" for the character");
    if (c != '\\') {
      value.text += c;
      continue;
    }
    if (i + 2 >= end) refuse(i, "this backslash escapes the quote that ends the line; write \\\\ for the character");
    constexpr std::string_view kEscapes = "ntr\"\\abfv", kMeant = "\n\t\r\"\\\a\b\f\v";
    const size_t known = kEscapes.find(text_[++i]);
    if (known == kEscapes.npos) value.text += '\\';
    value.text += known == kEscapes.npos ? text_[i] : kMeant[known];
  }
}

void Gettext::add_entry(const Entry& entry) {
  if (entry.id.text.empty()) return add_header(entry);
  for (const auto& [line, value] : entry.translations)
    if (!value.text.empty()) return;  // translated
  if (entry.translations.empty()) refuse(entry.begin, "there is no msgstr for this msgid");
  const Syntax syntax{.mnemonics = true, .icu = false};
  // A program would crash, and msgfmt refuse the catalogue, where conversions differ: then there is no translation.
  const std::string conversions = entry.formats ? conversions_of(entry.has_plural ? entry.plural.text : entry.id.text) : "";
  const auto write = [this, formats = entry.formats, conversions, single = conversions_of(entry.id.text)](std::string& out,
                                                                                                          const std::string& text) {
    const std::string there = formats ? conversions_of(text) : "";
    write_quoted(out, !formats || there == conversions || there == single ? text : "", line_end_);
  };
  const Fragments one = message(entry.id.text, syntax);
  const Fragments many = entry.has_plural ? message(entry.plural.text, syntax) : Fragments();
  if (one.empty() || (entry.has_plural && many.empty())) return;
  if (entry.flags_end != SIZE_MAX)
    insert(entry.flags_end, ", fuzzy");
  else
    insert(entry.begin, "#, fuzzy" + line_end_);
  if (!entry.has_plural) {
    const Value& value = entry.translations.front().second;
    return replace_value(value.begin, value.end, one, write);
  }
  // Where the form of 1 is that of 21 too, "one file" would be wrong.
  const bool counts = has_percent_argument(entry.id.text) || !has_percent_argument(entry.plural.text);
  for (size_t form = 0; form < forms_.count(); ++form) {
    const bool single = form == forms_.form_of(1) && (counts || forms_.is_one_alone(form));
    const size_t begin = form < entry.translations.size() ? entry.translations[form].first : entry.translations.back().second.end;
    const size_t end = form < entry.translations.size() ? entry.translations[form].second.end : begin;
    const std::string name = fmt::format("{}msgstr[{}] ", form < entry.translations.size() ? "" : line_end_, form);
    replace_value(begin, end, single ? one : many, [name, write](std::string& out, const std::string& text) {
      out += name;
      write(out, text);
    });
  }
  for (size_t form = forms_.count(); form < entry.translations.size(); ++form) {
    replace(entry.translations[form - 1].second.end, entry.translations[form].second.end, {{""}});
  }
}

void Gettext::add_header(const Entry& entry) {
  if (entry.translations.empty()) return;
  const Value& header = entry.translations.front().second;
  const size_t forms = header.text.find("Plural-Forms:");
  const std::string written = forms == std::string::npos ? "" : header.text.substr(forms, header.text.find('\n', forms) - forms);
  const std::string own = plural_forms_of(languages_.target);
  const bool known = !written.empty() && written.find("EXPRESSION") == std::string::npos && written.find("nplurals=") != std::string::npos;
  forms_ = PluralForms(known ? written : own);
  if (header.text.find("charset=") != std::string::npos && header.text.find("charset=CHARSET") == std::string::npos) {
    std::string charset = header.text.substr(header.text.find("charset=") + 8);
    charset.resize(std::min(charset.find_first_of(" \n"), charset.size()));
    for (char& c : charset) c = ascii_lower(c);
    if (charset != "utf-8" && charset != "utf8" && charset != "ascii" && charset != "us-ascii")
      refuse(header.begin, fmt::format("the catalogue is in {}; convert it with msgconv -t UTF-8", printable(charset)));
  }
  set_field(header, "charset=", "CHARSET", "UTF-8");
  if (!languages_.target.empty()) set_field(header, "Language:", "", " " + with_underscore(languages_.target));
  if (!known && !written.empty())
    set_field(header, "Plural-Forms:", written.substr(13), " " + own);
  else if (!known && header.end > header.begin && !languages_.target.empty())
    insert(header.end, fmt::format("{}\"Plural-Forms: {}\\n\"", line_end_, own));
}

// Sets a field of the header that has no value yet: nothing but space, or `unset`.
void Gettext::set_field(const Value& header, const char* name, std::string_view unset, const std::string& value) {
  const std::string_view bytes = std::string_view(text_).substr(0, header.end);
  const size_t field = bytes.find(name, header.begin);
  if (field == std::string_view::npos) return;
  const size_t begin = field + std::string_view(name).size();
  const size_t end = std::min(bytes.find_first_of("\\\"", begin), bytes.size());
  const std::string_view there = bytes.substr(begin, end - begin);
  if (trimmed(there).empty() || trimmed(there) == trimmed(unset)) replace(begin, end, {{value}});
}

}  // namespace starling
