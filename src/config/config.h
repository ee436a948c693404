// Configuration files, overrides, dumps and help from one description. A section is a plain struct with a free template
// visit(visitor, struct&) that names each key once; FieldList is the visitor and turns it into a list of bound fields. Sections may
// contain sections, whose names then have dots: "strategy.periodic". A key declares which other keys it needs to have an effect.
// Everything else (reading YAML, command-line overrides, writing, help) is ordinary code over that list, so a key cannot
// be read but not dumped, or dumped but not documented. Errors name file:line, key, value, what is allowed and the fix.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/quotes.h"
#include "config/suggestion.h"
#include "config/words.h"

namespace YAML {
class Node;
}

namespace starling {

struct ConfigField;

template <class T>
struct Ranged {
  T* value;
  T minimum, maximum;
};
// A list of structs, each with its own keys; the functions hide the element type.
struct RecordList {
  std::function<size_t()> size;
  std::function<void(size_t)> resize;
  std::function<std::vector<ConfigField>(size_t)> fields;
};

// A list of numbers.
template <class T>
struct RangedList {
  std::vector<T>* values;
  T minimum, maximum;
};
// An enum that has words (config/words.h); `value` is its index among the field's choices.
struct EnumValue {
  unsigned char* value;
};
// A key that belongs to another configuration, its value as text, and where it was found ("file:line").
struct ForeignKey {
  std::string name, text, where;
};

// A precondition for a key or section to have an effect: the key "section.key" must have one of these values or, if the list is empty,
// any value but 0.
struct ConfigNeed {
  std::string key;
  std::vector<std::string> values;
};

struct ConfigField {
  using Value = std::variant<Ranged<int64_t>, Ranged<uint64_t>, Ranged<int>, Ranged<double>, bool*, std::string*, std::vector<std::string>*,
                             EnumValue, RecordList, RangedList<int64_t>, RangedList<double>, std::vector<ForeignKey>*>;
  std::string key, help;
  Value value;
  std::vector<std::string> choices;  // allowed values of an enum, a string or the items of a list; empty = any
  bool shorthand = false;            // read and documented, but never written, since it stands for another key
  std::vector<ConfigNeed> needs;
};

struct ConfigSection {
  std::string name, help;
  std::vector<ConfigField> fields;
  std::vector<ConfigNeed> needs;  // of every field
};

// The visitor: collects one ConfigField per call, bound to the visited struct, which must outlive the list.
class FieldList {
 public:
  template <class T>
  FieldList& field(std::string key, T& value, std::string help) {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>>) {
      return add(std::move(key), std::move(help), &value, {});
    } else {
      return field(std::move(key), value, std::move(help), std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max());
    }
  }
  template <class T, class Low, class High>
  FieldList& field(std::string key, T& value, std::string help, Low minimum, High maximum) {
    return add(std::move(key), std::move(help), Ranged<T>{&value, static_cast<T>(minimum), static_cast<T>(maximum)}, {});
  }
  // Adds a key whose value is one of the words of an enum.
  template <Worded E>
  FieldList& choice(std::string key, E& value, std::string help) {
    static_assert(kEachHasWord<E>, "each value of the enum has a word");
    constexpr auto all = words(E{});
    return add(std::move(key), std::move(help), EnumValue{reinterpret_cast<unsigned char*>(&value)}, {all.begin(), all.end()});
  }
  FieldList& choice(std::string key, std::string& value, std::vector<std::string> allowed, std::string help) {
    return add(std::move(key), std::move(help), &value, std::move(allowed));
  }
  FieldList& choice(std::string key, std::vector<std::string>& value, std::vector<std::string> allowed, std::string help) {
    return add(std::move(key), std::move(help), &value, std::move(allowed));
  }
  template <class T, class Low, class High>
  void numbers(std::string key, std::vector<T>& values, std::string help, Low minimum, High maximum) {
    add(std::move(key), std::move(help), RangedList<T>{&values, static_cast<T>(minimum), static_cast<T>(maximum)}, {});
  }
  // Adds a precondition to the field just added; may be called several times.
  FieldList& needs(std::string key, std::vector<std::string> values = {}) {
    fields_.back().needs.push_back({std::move(key), std::move(values)});
    return *this;
  }
  template <Worded E>
  FieldList& needs(std::string key, std::initializer_list<E> values) {
    std::vector<std::string> all;
    for (const E value : values) all.emplace_back(word(value));
    return needs(std::move(key), std::move(all));
  }
  // Adds a section within this one.
  template <class Struct>
  void section(std::string key, Struct& part, std::string help, ConfigNeed need) {
    FieldList list;
    visit(list, part);
    sections_.push_back({std::move(key), std::move(help), std::move(list.fields_), {std::move(need)}});
  }
  // Collects every key with a dot that no other field has: "section.key" of another configuration. `key` is its name in the documentation
  // only. Never written.
  void foreign(std::string key, std::vector<ForeignKey>& to, std::string help) {
    add(std::move(key), std::move(help), &to, {});
    fields_.back().shorthand = true;
  }
  // Adds a list of structs, each with a visit() of its own.
  template <class Record>
  void records(std::string key, std::vector<Record>& value, std::string help) {
    auto fields = [&value](size_t i) {
      FieldList list;
      visit(list, value[i]);
      return std::move(list.fields());
    };
    add(std::move(key), std::move(help), RecordList{[&value] { return value.size(); }, [&value](size_t n) { value.resize(n); }, fields},
        {});
  }
  // Adds a key that is accepted and documented but never written: its owner folds it into another key after reading.
  void shorthand(std::string key, std::string& value, std::string help) {
    add(std::move(key), std::move(help), &value, {});
    fields_.back().shorthand = true;
  }

  std::vector<ConfigField>& fields() { return fields_; }
  std::vector<ConfigSection>& sections() { return sections_; }

 private:
  FieldList& add(std::string key, std::string help, ConfigField::Value value, std::vector<std::string> choices) {
    fields_.push_back({std::move(key), std::move(help), std::move(value), std::move(choices), false, {}});
    return *this;
  }
  std::vector<ConfigField> fields_;
  std::vector<ConfigSection> sections_;
};

// Returns the section `name` bound to `target`, which must outlive it, and the sections within it.
template <class Struct>
std::vector<ConfigSection> config_sections(const std::string& name, std::string help, Struct& target) {
  FieldList list;
  visit(list, target);
  std::vector<ConfigSection> all{{name, std::move(help), std::move(list.fields()), {}}};
  for (ConfigSection& inner : list.sections()) {
    inner.name = name + "." + inner.name;
    all.push_back(std::move(inner));
  }
  return all;
}
// The same for a struct that contains no sections.
template <class Struct>
ConfigSection config_section(const std::string& name, std::string help, Struct& target) {
  return std::move(config_sections(name, std::move(help), target).front());
}

// Gives advice on a name that is not among the `known` ones: the rest of a message, beginning with "; ", or "" for no advice. It is
// called before similar names are searched for.
using KeyAdvice = std::function<std::string(const std::string& name, const std::vector<std::string>& known)>;
// Gives advice, in the same form, on a value that the key "section.key" of this kind does not allow.
enum class ValueKind : uint8_t { word, whole_number, number };
using ValueAdvice = std::function<std::string(const std::string& key, const std::string& text, ValueKind kind)>;
struct ConfigAdvice {
  KeyAdvice key;
  ValueAdvice value;
  bool moved_keys = false;  // accept a key in the section that encloses its own, where an older version wrote it
};

// A parsed YAML file: a map of sections, each a map of keys and sections. Bad YAML, NUL bytes, invalid UTF-8 and more than a megabyte are
// ConfigErrors with file:line.
class ConfigDocument {
 public:
  // `file` is the name used in messages.
  ConfigDocument(std::string_view text, std::string file);
  struct Scalar {
    std::string text, where;  // where: "file:line"
  };
  // Returns the scalar at section.key if the file has one; for keys that must be known before the others are read.
  std::optional<Scalar> scalar(const std::string& section, const std::string& key) const;
  // Returns whether the file has a value of any kind there.
  bool has(const std::string& section, const std::string& key) const;
  // Assigns every key of the file to its field and returns the names, "section.key", of the keys assigned. Throws ConfigError for unknown
  // or repeated keys and for wrong types and values.
  std::set<std::string> read(std::span<const ConfigSection> sections, const ConfigAdvice& advice = {}) const;

 private:
  std::string file_;
  std::shared_ptr<const YAML::Node> root_;
};

// Assigns `text` to the field named "section.key" ("section.section.key"), or "section.list.0.key" within a list of structs (from 0 to the
// current size, which appends); lists of strings are comma-separated. Throws ConfigError as for files, with "command line" as the place.
void apply_override(std::span<const ConfigSection> sections, const std::string& name, const std::string& text,
                    const ConfigAdvice& advice = {});

struct WriteOptions {
  bool comments = false;                         // append each key's help text
  std::span<const ConfigSection> defaults = {};  // if given, keys with these values are omitted
  const std::set<std::string>* named = nullptr;  // "section.key" of keys that are written in any case
};
// Returns YAML text that ConfigDocument reads back to the same values.
std::string write_config(std::span<const ConfigSection> sections, const WriteOptions& options = {});

// Returns one line per key, "section.key: value" ("section.list.0.key: value" in lists of structs), without keys that have these defaults.
std::vector<std::string> config_lines(std::span<const ConfigSection> sections, std::span<const ConfigSection> defaults = {});

// Returns a sentence for each key that has no effect because its needs are not met: "KEY does nothing without OTHER VALUE". Skips keys that
// have their value in one of the `standards`. The needed keys must be among the sections.
std::vector<std::string> idle_keys(std::span<const ConfigSection> sections, std::span<const std::vector<ConfigSection>> standards);
// Returns whether the needs of the section are met.
bool has_needs(const ConfigSection& section, std::span<const ConfigSection> sections);
// Throws ConfigError for the first of the idle keys, if there are any.
void refuse_idle_keys(std::span<const ConfigSection> sections, std::span<const std::vector<ConfigSection>> standards);

// Returns all "section.key" names, shorthands included.
std::vector<std::string> config_names(std::span<const ConfigSection> sections);

// Returns a remark to print after the default of the key "section.key"; "" for none.
using DefaultRemark = std::function<std::string(const std::string& name)>;

// Help for a terminal: every key as --section.key with its help, its allowed values and the current value as default.
std::string config_help(std::span<const ConfigSection> sections, const DefaultRemark& remark = {});

// Help for some of the keys, in the given order, each with an example value.
struct KeyExample {
  std::string_view name, example;
};
std::string config_help(std::span<const ConfigSection> sections, std::span<const KeyExample> keys, const DefaultRemark& remark = {});

// A key as man pages and completions of shells have it.
struct ConfigKeyHelp {
  std::string name, allowed, text;   // "section.key"
  std::vector<std::string> choices;  // the words that it may be; empty: others
};
std::vector<ConfigKeyHelp> config_key_help(std::span<const ConfigSection> sections);

// Help for every key as Markdown, one table per section.
std::string config_markdown(std::span<const ConfigSection> sections, const DefaultRemark& remark = {});

}  // namespace starling
