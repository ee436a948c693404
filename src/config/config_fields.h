// What reading, overriding and writing configurations share: finding fields, and giving them values that come as text.
#pragma once

#include "base/error.h"
#include "config/config.h"

namespace starling {

struct ConfigTarget {
  std::string where;  // "file:line" or "command line"
  std::string name;   // "section.key"
  const ConfigField& field;
  const ConfigAdvice& advice;

  // What is known of a value that is not allowed, as the rest of a message; "" = nothing.
  std::string meant(std::string_view text, ValueKind kind) const { return advice.value ? advice.value(name, std::string(text), kind) : ""; }
  [[noreturn]] void fail(const std::string& problem) const { throw ConfigError(fmt::format("{}: {}: {}", where, name, problem)); }
};

std::string joined(const std::vector<std::string>& items, std::string_view separator = ", ");
std::vector<std::string> keys_of(const std::vector<ConfigField>& fields);
std::vector<std::string> names_of(std::span<const ConfigSection> sections);
const ConfigField* find_field(const std::vector<ConfigField>& fields, std::string_view key);  // null: none
const ConfigSection* find_section(std::span<const ConfigSection> sections, std::string_view name);

// The section that a name like "section.section.key" or "section.list.0.key" is of, and the rest of it; null: none has such a name.
std::pair<const ConfigSection*, std::string> section_of(std::span<const ConfigSection> sections, const std::string& name);

// The value as YAML.
std::string value_text(const ConfigField& field);
// Whether the defaults have such a field with this value.
bool is_default(const std::string& section, const ConfigField& field, std::span<const ConfigSection> defaults);
// "strategy.name bmuf, diloco or streaming".
std::string need_text(const ConfigNeed& need);
// The help, and what is needed.
std::string described(const std::string& help, const std::vector<ConfigNeed>& needs);

// The offset of the first byte that is NUL or not UTF-8; npos if there is none.
size_t first_bad_byte(std::string_view text);

// ConfigError unless the text is UTF-8 and among the field's choices.
void check_item(const ConfigTarget& t, const std::string& text);
// Types are checked by the field; a list may be given as "a, b" or "[a, b]".
void assign_text(const ConfigTarget& t, std::string_view text);
// To a list of numbers.
template <class T>
void assign_items(const ConfigTarget& t, const RangedList<T>& list, const std::vector<std::string>& items);

}  // namespace starling
