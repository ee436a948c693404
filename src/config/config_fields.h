// Shared by reading, overriding and writing configurations: finds fields and assigns them values given as text.
#pragma once

#include "base/error.h"
#include "config/config.h"

namespace starling {

// A field that is about to be assigned, and what error messages need to know about it.
struct ConfigTarget {
  std::string where;  // "file:line" or "command line"
  std::string name;   // "section.key"
  const ConfigField& field;
  const ConfigAdvice& advice;

  // Returns advice on a value that is not allowed, as the rest of a message; "" for none.
  std::string meant(std::string_view text, ValueKind kind) const { return advice.value ? advice.value(name, std::string(text), kind) : ""; }
  [[noreturn]] void fail(const std::string& problem) const { throw ConfigError(fmt::format("{}: {}: {}", where, name, problem)); }
};

std::string joined(const std::vector<std::string>& items, std::string_view separator = ", ");
std::vector<std::string> keys_of(const std::vector<ConfigField>& fields);
std::vector<std::string> names_of(std::span<const ConfigSection> sections);
const ConfigField* find_field(const std::vector<ConfigField>& fields, std::string_view key);  // null: none
const ConfigSection* find_section(std::span<const ConfigSection> sections, std::string_view name);

// Returns the section of a name like "section.section.key" or "section.list.0.key", and the rest of the name; null if there is none.
std::pair<const ConfigSection*, std::string> section_of(std::span<const ConfigSection> sections, const std::string& name);

// Returns the value as YAML.
std::string value_text(const ConfigField& field);
// Returns whether the defaults have this field with the same value.
bool is_default(const std::string& section, const ConfigField& field, std::span<const ConfigSection> defaults);
// Formats a need: "strategy.name bmuf, diloco or streaming".
std::string need_text(const ConfigNeed& need);
// Returns the help text followed by the needs.
std::string described(const std::string& help, const std::vector<ConfigNeed>& needs);

// Returns the offset of the first byte that is NUL or not UTF-8; npos if there is none.
size_t first_bad_byte(std::string_view text);

// Throws ConfigError unless the text is UTF-8 and among the field's choices.
void check_item(const ConfigTarget& t, const std::string& text);
// Assigns a value given as text, checked against the field's type; a list may be written "a, b" or "[a, b]".
void assign_text(const ConfigTarget& t, std::string_view text);
// Assigns the items of a list of numbers.
template <class T>
void assign_items(const ConfigTarget& t, const RangedList<T>& list, const std::vector<std::string>& items);

}  // namespace starling
