// What reading, overriding and writing configurations share: finding fields, and giving them values that come as text.
#pragma once

#include "base/config.h"
#include "base/error.h"

namespace starling {

struct ConfigTarget {
  std::string where;  // "file:line" or "command line"
  std::string name;   // "section.key"
  const ConfigField& field;
  const ConfigAdvice& advice;

  // What is known of a value that is not allowed, as the rest of a message; "" = nothing.
  std::string meant(std::string_view text, ValueKind kind) const {
    return advice.value ? advice.value(name, std::string(text), kind) : "";
  }
  [[noreturn]] void fail(const std::string& problem) const { throw ConfigError(fmt::format("{}: {}: {}", where, name, problem)); }
};

std::string joined(const std::vector<std::string>& items, std::string_view separator = ", ");
std::vector<std::string> keys_of(const std::vector<ConfigField>& fields);
std::vector<std::string> names_of(std::span<const ConfigSection> sections);
const ConfigField* find_field(const std::vector<ConfigField>& fields, std::string_view key);  // null: none
const ConfigSection* find_section(std::span<const ConfigSection> sections, std::string_view name);

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
