// Writes and documents configurations; see config.h.
#include "config/config.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/ascii.h"
#include "base/utf8.h"
#include "config/config_fields.h"

namespace starling {
namespace {

std::string number_text(double value) { return fmt::format("{}", value); }
template <class T>
std::string number_text(T value) {
  return fmt::format("{}", value);
}

// Sections around it.
size_t depth(const ConfigSection& section) { return static_cast<size_t>(std::count(section.name.begin(), section.name.end(), '.')); }

bool plain(const std::string& text) {
  static const std::set<std::string> special = {"null", "Null", "NULL"};
  if (text.empty() || text[0] == '-' || special.contains(text)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return is_ascii_letter_or_digit(c) || std::strchr("_./+-", c); });
}

std::string string_text(const std::string& text) {
  if (plain(text)) return text;
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const DecodedCodePoint c = decode_utf8_at(std::string_view(text).substr(at));
    const std::string_view bytes = std::string_view(text).substr(at, std::max(1, c.length));
    at += bytes.size();
    if (c.length > 0 && (c.value < 0x20 || (c.value >= 0x7F && c.value < 0xA0)))
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c.value));
    else if (c.value == 0x2028 || c.value == 0x2029)  // ends of lines for YAML 1.1
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c.value));
    else
      (bytes == "\"" || bytes == "\\" ? out += '\\' : out) += bytes;
  }
  return out + '"';
}

struct ValueText {
  const ConfigField& field;

  template <class T>
  std::string operator()(const Ranged<T>& range) const {
    return number_text(*range.value);
  }
  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const std::string* value) const { return string_text(*value); }
  std::string operator()(const EnumValue& value) const { return field.choices[*value.value]; }
  std::string operator()(const std::vector<std::string>* value) const {
    std::vector<std::string> items;
    for (const auto& item : *value) items.push_back(string_text(item));
    return "[" + joined(items) + "]";
  }
  template <class T>
  std::string operator()(const RangedList<T>& list) const {
    std::vector<std::string> items;
    for (const T value : *list.values) items.push_back(number_text(value));
    return "[" + joined(items) + "]";
  }
  std::string operator()(const std::vector<ForeignKey>*) const { return ""; }
  std::string operator()(const RecordList& list) const {
    std::string out;
    for (size_t i = 0; i < list.size(); ++i) out += record(list.fields(i));
    return out.empty() ? "[]" : out;
  }
  // Writes one list item; empty strings and lists are omitted.
  static std::string record(const std::vector<ConfigField>& fields) {
    std::string out;
    for (const auto& field : fields) {
      const std::string text = value_text(field);
      if (!field.shorthand && text != "\"\"" && text != "[]")
        out += fmt::format("\n{}{}: {}", out.empty() ? "    - " : "      ", field.key, text);
    }
    return out.empty() ? "\n    - {}" : out;
  }
};

std::string written_field(const ConfigField& field, const std::string& indent, bool comments) {
  const std::string value = value_text(field), comment = comments ? "  # " + described(field.help, field.needs) : "";
  return fmt::format("{}{}:{}{}{}\n", indent, field.key, value.starts_with('\n') ? comment : "",
                     value.starts_with('\n') ? value : " " + value, value.starts_with('\n') ? "" : comment);
}

// ---- help ----

// A bar ends a cell of a Markdown table.
std::string table_cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

struct Allowed {
  template <class T>
  std::string operator()(const Ranged<T>& range) const {
    const bool open = range.maximum == std::numeric_limits<T>::max();
    return fmt::format("{}..{}", number_text(range.minimum), open ? "" : number_text(range.maximum));
  }
  std::string operator()(const bool*) const { return "true, false"; }
  std::string operator()(const std::string*) const { return "text"; }
  std::string operator()(const EnumValue&) const { return ""; }
  std::string operator()(const std::vector<std::string>*) const { return "list"; }
  template <class T>
  std::string operator()(const RangedList<T>& list) const {
    return "list of " + (*this)(Ranged<T>{nullptr, list.minimum, list.maximum});
  }
  std::string operator()(const std::vector<ForeignKey>*) const { return "any value"; }
  std::string operator()(const RecordList& list) const {
    list.resize(list.size() + 1);  // a fresh record shows its keys
    const std::string keys = joined(keys_of(list.fields(list.size() - 1)));
    list.resize(list.size() - 1);
    return "list of {" + keys + "}";
  }
};

std::string allowed_text(const ConfigField& field) {
  const std::string kind = std::visit(Allowed{}, field.value);
  if (field.choices.empty()) return kind;
  return (kind == "list" ? "list of " : "") + joined(field.choices);
}

std::string default_text(const ConfigField& field) {
  if (field.shorthand) return "";
  const std::string value = value_text(field);
  return value == "\"\"" ? "" : value;
}

std::string field_help(const std::string& option, const ConfigField& field, const std::string& remark) {
  const std::string value = default_text(field);
  return fmt::format("  --{:<32} {}\n  {:<34} {}{}\n", option, described(field.help, field.needs), "", allowed_text(field),
                     value.empty() ? "" : fmt::format(" (default {}{})", value, remark));
}

std::string remark_on(const DefaultRemark& remark, const std::string& name) { return remark ? remark(name) : ""; }

}  // namespace

std::string value_text(const ConfigField& field) { return std::visit(ValueText{field}, field.value); }

bool is_default(const std::string& section, const ConfigField& field, std::span<const ConfigSection> defaults) {
  const ConfigSection* found = find_section(defaults, section);
  const ConfigField* other = found ? find_field(found->fields, field.key) : nullptr;
  return other && value_text(*other) == value_text(field);
}

std::string write_config(std::span<const ConfigSection> sections, const WriteOptions& options) {
  std::string out;
  std::vector<std::string> bodies;
  for (const auto& section : sections) {
    const std::string indent(2 * depth(section) + 2, ' ');
    std::string& body = bodies.emplace_back();
    for (const auto& field : section.fields) {
      const bool named = options.named && options.named->contains(section.name + "." + field.key);
      if (!field.shorthand && (named || !is_default(section.name, field, options.defaults)))
        body += written_field(field, indent, options.comments);
    }
  }
  for (size_t i = 0; i < sections.size(); ++i) {
    const ConfigSection& section = sections[i];
    bool empty = bodies[i].empty();
    for (size_t k = i + 1; k < sections.size() && sections[k].name.starts_with(section.name + "."); ++k) empty = empty && bodies[k].empty();
    if (empty) continue;
    const std::string indent(2 * depth(section), ' ');
    if (options.comments && !section.help.empty())
      out += fmt::format("{}{}# {}\n", out.empty() || !indent.empty() ? "" : "\n", indent, described(section.help, section.needs));
    out += fmt::format("{}{}:\n{}", indent, section.name.substr(section.name.rfind('.') + 1), bodies[i]);
  }
  return out;
}

std::vector<std::string> config_lines(std::span<const ConfigSection> sections, std::span<const ConfigSection> defaults) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& prefix, const ConfigField& field) {
    lines.push_back(fmt::format("{}.{}: {}", prefix, field.key, value_text(field)));
  };
  for (const auto& section : sections)
    for (const auto& field : section.fields) {
      if (field.shorthand || is_default(section.name, field, defaults)) continue;
      const auto* list = std::get_if<RecordList>(&field.value);
      if (!list || list->size() == 0) add(section.name, field);
      for (size_t i = 0; list && i < list->size(); ++i)
        for (const ConfigField& inner : list->fields(i))
          if (!inner.shorthand && value_text(inner) != "\"\"") add(fmt::format("{}.{}.{}", section.name, field.key, i), inner);
    }
  return lines;
}

std::vector<std::string> config_names(std::span<const ConfigSection> sections) {
  std::vector<std::string> names;
  for (const auto& section : sections) {
    for (const auto& field : section.fields) names.push_back(section.name + "." + field.key);
  }
  return names;
}

std::string config_help(std::span<const ConfigSection> sections, const DefaultRemark& remark) {
  std::string out;
  for (const auto& section : sections) {
    out += fmt::format("\n{}: {}\n", section.name, described(section.help, section.needs));
    for (const auto& field : section.fields) {
      const std::string name = section.name + "." + field.key;
      out += field_help(name, field, remark_on(remark, name));
    }
  }
  return out;
}

std::string config_help(std::span<const ConfigSection> sections, std::span<const KeyExample> keys, const DefaultRemark& remark) {
  std::string out;
  for (const auto& [name, example] : keys) {
    const auto [section, key] = section_of(sections, std::string(name));
    const ConfigField* field = section ? find_field(section->fields, key) : nullptr;
    CHECK(field, "there is no key {}", name);
    out += field_help(fmt::format("{} {}", name, example), *field, remark_on(remark, std::string(name)));
  }
  return out;
}

std::string config_markdown(std::span<const ConfigSection> sections, const DefaultRemark& remark) {
  std::string out;
  for (const auto& section : sections) {
    out += fmt::format("## {}\n\n{}.\n\n| Key | Default | Allowed | Meaning |\n|---|---|---|---|\n", section.name,
                       described(section.help, section.needs));
    for (const auto& field : section.fields) {
      const std::string value = default_text(field);
      const std::string shown = value.empty() ? "" : "`" + value + "`" + remark_on(remark, section.name + "." + field.key);
      out +=
          fmt::format("| `{}` | {} | {} | {} |\n", field.key, shown, allowed_text(field), table_cell(described(field.help, field.needs)));
    }
    out += "\n";
  }
  return out;
}

std::vector<ConfigKeyHelp> config_key_help(std::span<const ConfigSection> sections) {
  std::vector<ConfigKeyHelp> keys;
  for (const auto& section : sections)
    for (const auto& field : section.fields)
      keys.push_back({section.name + "." + field.key, allowed_text(field), described(field.help, field.needs), field.choices});
  return keys;
}

}  // namespace starling
