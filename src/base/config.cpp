// Reading, overriding, writing and documenting configurations; see config.h. yaml-cpp does the parsing; types, ranges and
// messages are ours, because users meet this file through its messages. Values are taken as text and typed by the field,
// never by YAML's guessing, so `source: no` is the file "no".
#include "base/config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/error.h"

namespace starling {
namespace {

constexpr size_t maximum_bytes = 1 << 20;  // a configuration is a page or two; more is the wrong file
constexpr size_t maximum_records = 10000;  // a list of corpora; stops a chain of aliases from multiplying

// ---- text helpers ----

// Length of the valid UTF-8 sequence at `at`; 0 if it is not valid (overlong forms, surrogates, above U+10FFFF).
size_t utf8_length(std::string_view s, size_t at) {
  const auto byte = [&](size_t i) -> unsigned { return at + i < s.size() ? static_cast<unsigned char>(s[at + i]) : 0u; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned c = byte(0);
  if (c < 0x80) return 1;
  if (c >= 0xC2 && c <= 0xDF) return follows(1) ? 2 : 0;
  if ((c & 0xF0) == 0xE0) {
    if ((c == 0xE0 && byte(1) < 0xA0) || (c == 0xED && byte(1) > 0x9F)) return 0;
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (c >= 0xF0 && c <= 0xF4) {
    if ((c == 0xF0 && byte(1) < 0x90) || (c == 0xF4 && byte(1) > 0x8F)) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

// The offset of the first byte that is NUL or not UTF-8; npos if there is none.
size_t first_bad_byte(std::string_view s) {
  for (size_t at = 0; at < s.size();) {
    const size_t n = s[at] == 0 ? 0 : utf8_length(s, at);
    if (n == 0) return at;
    at += n;
  }
  return std::string_view::npos;
}

std::string joined(const std::vector<std::string>& items, std::string_view separator = ", ") {
  return fmt::format("{}", fmt::join(items, separator));
}

// ---- assigning text to a field ----

struct Target {
  std::string where;  // "file:line" or "command line"
  std::string name;   // "section.key"
  const ConfigField& field;

  [[noreturn]] void fail(const std::string& problem) const { throw ConfigError(fmt::format("{}: {}: {}", where, name, problem)); }
};

template <class T>
constexpr std::string_view number_word() {
  return std::is_same_v<T, double> ? "a number" : "a whole number";
}

template <class T>
std::string range_text(T low, T high) {
  const bool no_low = low == std::numeric_limits<T>::lowest() && !std::is_unsigned_v<T>, no_high = high == std::numeric_limits<T>::max();
  if (no_low && no_high) return std::string(number_word<T>());
  if (no_high) return fmt::format("{} of at least {}", number_word<T>(), low);
  if (no_low) return fmt::format("{} of at most {}", number_word<T>(), high);
  return fmt::format("{} from {} to {}", number_word<T>(), low, high);
}

template <class T>
void assign(const Target& t, const Ranged<T>& range, std::string_view text) {
  std::string_view digits = text;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool negative_unsigned = std::is_unsigned_v<T> && digits.size() > 1 && digits[0] == '-';
  const bool whole = error != std::errc::invalid_argument && end == digits.data() + digits.size();
  if (!whole && !negative_unsigned) {
    t.fail(fmt::format("{} is not {}; give {}", in_quotes(text), number_word<T>(), range_text(range.minimum, range.maximum)));
  }
  bool inside = error == std::errc() && value >= range.minimum && value <= range.maximum;
  if constexpr (std::is_same_v<T, double>) inside = inside && std::isfinite(value);
  if (!inside) t.fail(fmt::format("{} is out of range; give {}", in_quotes(text), range_text(range.minimum, range.maximum)));
  *range.value = value;
}

void assign(const Target& t, bool* value, std::string_view text) {
  if (text == "true" || text == "yes" || text == "on") {
    *value = true;
  } else if (text == "false" || text == "no" || text == "off") {
    *value = false;
  } else {
    t.fail(fmt::format("{} is neither true nor false; give one of these two", in_quotes(text)));
  }
}

void check_item(const Target& t, const std::string& text) {
  if (first_bad_byte(text) != std::string::npos)
    t.fail(fmt::format("{} has a NUL byte or invalid UTF-8; give UTF-8 text", in_quotes(text)));
  const auto& allowed = t.field.choices;
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return;
  t.fail(fmt::format("{} is not allowed{}{} choose {} {}", in_quotes(text), did_you_mean(text, allowed),
                     closest(text, allowed).empty() ? ";" : "", allowed.size() > 1 ? "one of" : "", joined(allowed)));
}

void assign(const Target& t, std::string* value, std::string_view text) {
  check_item(t, std::string(text));
  *value = text;
}

void assign(const Target& t, std::vector<std::string>* value, std::string_view text) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  std::vector<std::string> items;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (!item.empty()) items.emplace_back(item);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  for (const auto& item : items) check_item(t, item);
  *value = std::move(items);
}

template <class T>
void assign_items(const Target& t, const RangedList<T>& list, const std::vector<std::string>& items) {
  std::vector<T> values(items.size());
  for (size_t i = 0; i < items.size(); ++i) assign(t, Ranged<T>{&values[i], list.minimum, list.maximum}, items[i]);
  *list.values = std::move(values);
}

template <class T>
void assign(const Target& t, const RangedList<T>& list, std::string_view text) {
  std::vector<std::string> items;
  assign(t, &items, text);
  assign_items(t, list, items);
}

void assign(const Target& t, std::vector<ForeignKey>*, std::string_view text) {
  t.fail(fmt::format("{} cannot be set so; write the other configuration's key, section.key, with its value", in_quotes(text)));
}

void assign(const Target& t, const RecordList&, std::string_view text) {
  t.fail(fmt::format("{} is not a list; write a list of maps in the file, or set one value with --{}.0.KEY", in_quotes(text), t.name));
}

void assign_text(const Target& t, std::string_view text) {
  std::visit([&](const auto& value) { assign(t, value, text); }, t.field.value);
}

std::vector<std::string> keys_of(const std::vector<ConfigField>& fields) {
  std::vector<std::string> keys;
  for (const auto& field : fields) keys.push_back(field.key);
  return keys;
}

const ConfigField* find_field(const std::vector<ConfigField>& fields, std::string_view key) {
  for (const auto& field : fields) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

const ConfigSection* find_section(std::span<const ConfigSection> sections, std::string_view name) {
  for (const auto& section : sections) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

std::vector<std::string> names_of(std::span<const ConfigSection> sections) {
  std::vector<std::string> names;
  for (const auto& section : sections) names.push_back(section.name);
  return names;
}

// ---- reading YAML ----

class Reader {
 public:
  Reader(const std::string& file, std::span<const ConfigSection> sections, const KeyAdvice& advice)
      : file_(file), sections_(sections), advice_(advice) {}

  void document(const YAML::Node& root) const {
    if (root.IsNull()) return;
    if (!root.IsMap()) {
      fail(root, fmt::format("a configuration is a map of sections; begin with one of {}", joined(names_of(sections_), ":, ") + ":"));
    }
    std::set<std::string> seen;
    for (const auto& entry : root) section(entry.first, entry.second, seen);
  }

 private:
  std::string where(const YAML::Node& node) const { return fmt::format("{}:{}", file_, node.Mark().line + 1); }
  [[noreturn]] void fail(const YAML::Node& node, const std::string& problem) const {
    throw ConfigError(fmt::format("{}: {}", where(node), problem));
  }

  std::string key_text(const YAML::Node& key, std::set<std::string>& seen) const {
    if (!key.IsScalar()) fail(key, "a key must be a plain name; write 'key: value'");
    std::string text = key.Scalar();
    if (!seen.insert(text).second) fail(key, fmt::format("the key {} is given twice; remove one", in_quotes(text)));
    return text;
  }

  void section(const YAML::Node& key, const YAML::Node& body, std::set<std::string>& seen) const {
    const std::string name = key_text(key, seen);
    const ConfigSection* found = find_section(sections_, name);
    if (!found) {
      if (const std::string advice = advice_on(name); !advice.empty())
        fail(key, fmt::format("there is no section {}{}", in_quotes(name), advice));
      std::string hint = did_you_mean(name, names_of(sections_));
      if (hint.empty()) hint = did_you_mean(name, config_names(sections_));
      fail(key, fmt::format("there is no section {}{} The sections are {}", in_quotes(name), hint.empty() ? "." : hint,
                            joined(names_of(sections_))));
    }
    if (body.IsNull()) return;
    if (!body.IsMap())
      fail(key, fmt::format("the section {} must hold 'key: value' lines, indented by two blanks{}", in_quotes(name), advice_on(name)));
    map(body, name, found->fields);
  }

  void map(const YAML::Node& body, const std::string& prefix, const std::vector<ConfigField>& fields) const {
    std::set<std::string> seen;
    for (const auto& entry : body) {
      const std::string key = key_text(entry.first, seen);
      const ConfigField* field = find_field(fields, key);
      if (!field && foreign(entry.first, key, entry.second, fields)) continue;
      if (!field) unknown_key(entry.first, prefix, key, fields);
      value({where(entry.first), prefix + "." + key, *field}, entry.second);
    }
  }

  // Whether the key went to a field that takes those of another configuration.
  bool foreign(const YAML::Node& node, const std::string& key, const YAML::Node& body, const std::vector<ConfigField>& fields) const {
    if (key.find('.') == std::string::npos) return false;
    for (const ConfigField& field : fields)
      if (const auto keys = std::get_if<std::vector<ForeignKey>*>(&field.value)) {
        (*keys)->push_back({key, foreign_text({where(node), key, field}, body), where(node)});
        return true;
      }
    return false;
  }

  static std::string foreign_text(const Target& t, const YAML::Node& body) {
    if (body.IsNull()) return "";
    if (body.IsScalar()) return body.Scalar();
    std::vector<std::string> items;
    if (!body.IsSequence()) t.fail("must be a single value or a list of plain values");
    for (const auto& item : body) {
      if (!item.IsScalar()) t.fail("must be a list of plain values");
      items.push_back(item.Scalar());
    }
    return "[" + joined(items) + "]";
  }

  [[noreturn]] void unknown_key(const YAML::Node& node, const std::string& prefix, const std::string& key,
                                const std::vector<ConfigField>& fields) const {
    std::vector<std::string> here;
    for (const std::string& other : keys_of(fields)) here.push_back(prefix + "." + other);
    std::string hint = advice_on(prefix + "." + key, here);
    if (hint.empty()) hint = did_you_mean(key, keys_of(fields));
    if (hint.empty()) hint = did_you_mean(key, config_names(sections_));
    if (hint.empty()) hint = fmt::format("; remove it, or use one of {}", joined(keys_of(fields)));
    fail(node, fmt::format("there is no key {} in {}{}", in_quotes(key), prefix, hint));
  }

  void value(const Target& t, const YAML::Node& node) const {
    if (std::holds_alternative<RecordList>(t.field.value)) {
      records(t, node, std::get<RecordList>(t.field.value));
    } else if (auto list = std::get_if<std::vector<std::string>*>(&t.field.value); list && node.IsSequence()) {
      strings(t, node, **list);
    } else if (const auto whole = std::get_if<RangedList<int64_t>>(&t.field.value); whole && node.IsSequence()) {
      numbers(t, node, *whole);
    } else if (const auto real = std::get_if<RangedList<double>>(&t.field.value); real && node.IsSequence()) {
      numbers(t, node, *real);
    } else if (node.IsScalar()) {
      assign_text(t, node.Scalar());
    } else if (node.IsNull() &&
               (std::holds_alternative<std::string*>(t.field.value) || std::holds_alternative<std::vector<std::string>*>(t.field.value))) {
      assign_text(t, "");
    } else {
      t.fail(node.IsNull() ? "has no value; write one behind the colon, or remove the line"
                           : "must be a single value, not a list or a map");
    }
  }

  template <class T>
  void numbers(const Target& t, const YAML::Node& node, const RangedList<T>& list) const {
    std::vector<std::string> items;
    strings(t, node, items);
    assign_items(t, list, items);
  }

  void strings(const Target& t, const YAML::Node& node, std::vector<std::string>& out) const {
    std::vector<std::string> items;
    for (const auto& item : node) {
      if (!item.IsScalar()) t.fail("must be a list of plain values");
      items.push_back(item.Scalar());
      check_item(t, items.back());
    }
    out = std::move(items);
  }

  void records(const Target& t, const YAML::Node& node, const RecordList& list) const {
    if (node.IsNull()) return list.resize(0);
    if (!node.IsSequence()) t.fail("must be a list of maps; write '- key: value' lines below it");
    if (node.size() > maximum_records) t.fail(fmt::format("has {} entries; at most {} are supported", node.size(), maximum_records));
    list.resize(0);
    list.resize(node.size());
    for (size_t i = 0; i < node.size(); ++i) {
      if (!node[i].IsMap()) fail(node[i], fmt::format("{}.{} must be a map of 'key: value' lines", t.name, i));
      map(node[i], fmt::format("{}.{}", t.name, i), list.fields(i));
    }
  }

  // What the advice says of a name that is none here; "" = nothing.
  std::string advice_on(const std::string& name, const std::vector<std::string>& more = {}) const {
    if (!advice_) return "";
    std::vector<std::string> known = config_names(sections_);
    known.insert(known.end(), more.begin(), more.end());
    return advice_(name, known);
  }

  const std::string& file_;
  std::span<const ConfigSection> sections_;
  const KeyAdvice& advice_;
};

void check_text(std::string_view text, const std::string& file) {
  if (text.size() > maximum_bytes) {
    throw ConfigError(
        fmt::format("{}:1: {} bytes are too many for a configuration (limit 1 MiB); is this the right file?", file, text.size()));
  }
  const size_t bad = first_bad_byte(text);
  if (bad == std::string_view::npos) return;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n');
  throw ConfigError(fmt::format("{}:{}: byte 0x{:02x} is {}; save the file as UTF-8 text", file, line,
                                static_cast<unsigned char>(text[bad]), text[bad] == 0 ? "a NUL" : "not valid UTF-8"));
}

// yaml-cpp's words for what went wrong, with the fix.
std::string parse_problem(const std::string& message) {
  if (message == YAML::ErrorMsg::DOC_IN_SCALAR) return "a quote opened at or above this line is never closed; close it";
  if (message == YAML::ErrorMsg::BAD_FILE) return "not valid YAML: nested too deeply; a configuration has sections with keys, no more";
  return fmt::format("not valid YAML: {}; check indentation, quotes and brackets there", message);
}

// ---- writing ----

std::string number_text(double value) { return fmt::format("{}", value); }
template <class T>
std::string number_text(T value) {
  return fmt::format("{}", value);
}

bool plain(const std::string& text) {
  static const std::set<std::string> special = {"null", "Null", "NULL"};
  if (text.empty() || text[0] == '-' || special.contains(text)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::strchr("_./+-", c);
  });
}

std::string string_text(const std::string& text) {
  if (plain(text)) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\', out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

struct ValueText {
  template <class T>
  std::string operator()(const Ranged<T>& range) const {
    return number_text(*range.value);
  }
  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const std::string* value) const { return string_text(*value); }
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
  // One list item; empty strings are left out.
  static std::string record(const std::vector<ConfigField>& fields) {
    std::string out;
    for (const auto& field : fields) {
      const std::string text = std::visit(ValueText{}, field.value);
      if (!field.shorthand && text != "\"\"") out += fmt::format("\n{}{}: {}", out.empty() ? "    - " : "      ", field.key, text);
    }
    return out.empty() ? "\n    - {}" : out;
  }
};

std::string value_text(const ConfigField& field) { return std::visit(ValueText{}, field.value); }

bool is_default(const std::string& section, const ConfigField& field, std::span<const ConfigSection> defaults) {
  const ConfigSection* found = find_section(defaults, section);
  const ConfigField* other = found ? find_field(found->fields, field.key) : nullptr;
  return other && value_text(*other) == value_text(field);
}

std::string written_field(const ConfigField& field, bool comments) {
  const std::string value = value_text(field), comment = comments ? "  # " + field.help : "";
  if (value.starts_with('\n')) return fmt::format("  {}:{}{}\n", field.key, comment, value);
  return fmt::format("  {}: {}{}\n", field.key, value, comment);
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

std::string field_help(const std::string& option, const ConfigField& field) {
  const std::string value = default_text(field);
  return fmt::format("  --{:<32} {}\n  {:<34} {}{}\n", option, field.help, "", allowed_text(field),
                     value.empty() ? "" : fmt::format(" (default {})", value));
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr size_t longest = 80;
  std::string out = "'";
  size_t at = 0;
  while (at < text.size() && out.size() < longest) {
    const size_t n = utf8_length(text, at);
    const unsigned c = static_cast<unsigned char>(text[at]);
    if (n == 0 || c < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", c);
      ++at;
    } else {
      out += text.substr(at, n);
      at += n;
    }
  }
  return out + (at < text.size() ? "...'" : "'");
}

ConfigDocument::ConfigDocument(std::string_view text, std::string file) : file_(std::move(file)) {
  check_text(text, file_);
  try {
    // The end-of-document mark makes yaml-cpp refuse a quote that is never closed; without it the rest of the file would be its text.
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text) + "\n...\n");
    if (documents.size() > 1) {
      throw ConfigError(
          fmt::format("{}:{}: a second YAML document begins here; remove the '---' line", file_, documents[1].Mark().line + 1));
    }
    root_ = std::make_shared<const YAML::Node>(documents.empty() ? YAML::Node() : documents[0]);
  } catch (const YAML::Exception& e) {
    const auto lines = std::count(text.begin(), text.end(), '\n') + (text.ends_with('\n') ? 0 : 1);
    throw ConfigError(fmt::format("{}:{}: {}", file_, std::clamp<std::ptrdiff_t>(e.mark.line + 1, 1, lines), parse_problem(e.msg)));
  }
}

std::optional<ConfigDocument::Scalar> ConfigDocument::scalar(const std::string& section, const std::string& key) const {
  if (!root_->IsMap()) return std::nullopt;
  const YAML::Node body = (*root_)[section];
  if (!body.IsDefined() || !body.IsMap()) return std::nullopt;
  const YAML::Node value = body[key];
  if (!value.IsDefined() || !value.IsScalar()) return std::nullopt;
  return Scalar{value.Scalar(), fmt::format("{}:{}", file_, value.Mark().line + 1)};
}

bool ConfigDocument::has(const std::string& section, const std::string& key) const {
  if (!root_->IsMap()) return false;
  const YAML::Node body = (*root_)[section];
  return body.IsDefined() && body.IsMap() && body[key].IsDefined();
}

void ConfigDocument::read(std::span<const ConfigSection> sections, const KeyAdvice& advice) const {
  Reader(file_, sections, advice).document(*root_);
}

void apply_override(std::span<const ConfigSection> sections, const std::string& name, const std::string& text, const KeyAdvice& advice) {
  const std::string place = "command line";
  const auto unknown = [&](const std::vector<std::string>& candidates) {
    std::string hint = advice ? advice(name, candidates) : "";
    if (hint.empty()) hint = did_you_mean(name, candidates);
    throw ConfigError(
        fmt::format("{}: there is no key {}{}", place, in_quotes(name), hint.empty() ? "; 'starling train --help' lists all keys" : hint));
  };
  const size_t dot = name.find('.'), next = dot == std::string::npos ? dot : name.find('.', dot + 1);
  const ConfigSection* section = find_section(sections, name.substr(0, dot));
  if (!section || dot == std::string::npos) unknown(config_names(sections));
  const ConfigField* field = find_field(section->fields, name.substr(dot + 1, next == std::string::npos ? next : next - dot - 1));
  if (!field) unknown(config_names(sections));
  if (next == std::string::npos) return assign_text({place, name, *field}, text);

  const auto* list = std::get_if<RecordList>(&field->value);
  if (!list) unknown(config_names(sections));
  const size_t last = name.find('.', next + 1);
  const std::string index_text = name.substr(next + 1, last == std::string::npos ? last : last - next - 1);
  const std::string prefix = name.substr(0, next + 1), key = last == std::string::npos ? "" : name.substr(last + 1);
  size_t index = 0;
  const auto [end, error] = std::from_chars(index_text.data(), index_text.data() + index_text.size(), index);
  if (error != std::errc() || end != index_text.data() + index_text.size() || index > std::min(list->size(), maximum_records)) {
    throw ConfigError(fmt::format("{}: {}: the entry {} does not exist; give a number from 0 to {} (the latter appends)", place,
                                  in_quotes(name), in_quotes(index_text), list->size()));
  }
  if (index == list->size()) list->resize(index + 1);
  const std::vector<ConfigField> fields = list->fields(index);
  const ConfigField* inner = find_field(fields, key);
  if (!inner) {
    std::vector<std::string> candidates;
    for (const auto& f : fields) candidates.push_back(prefix + index_text + "." + f.key);
    unknown(candidates);
  }
  assign_text({place, name, *inner}, text);
}

std::string write_config(std::span<const ConfigSection> sections, const WriteOptions& options) {
  std::string out;
  for (const auto& section : sections) {
    std::string body;
    for (const auto& field : section.fields) {
      if (!field.shorthand && !is_default(section.name, field, options.defaults)) body += written_field(field, options.comments);
    }
    if (body.empty()) continue;
    if (options.comments && !section.help.empty()) out += fmt::format("{}# {}\n", out.empty() ? "" : "\n", section.help);
    out += section.name + ":\n" + body;
  }
  return out;
}

std::vector<std::string> config_names(std::span<const ConfigSection> sections) {
  std::vector<std::string> names;
  for (const auto& section : sections) {
    for (const auto& field : section.fields) names.push_back(section.name + "." + field.key);
  }
  return names;
}

std::string config_help(std::span<const ConfigSection> sections) {
  std::string out;
  for (const auto& section : sections) {
    out += fmt::format("\n{}: {}\n", section.name, section.help);
    for (const auto& field : section.fields) out += field_help(section.name + "." + field.key, field);
  }
  return out;
}

std::string config_help(std::span<const ConfigSection> sections, std::span<const KeyExample> keys) {
  std::string out;
  for (const auto& [name, example] : keys) {
    const size_t dot = name.find('.');
    const ConfigSection* section = find_section(sections, name.substr(0, dot));
    const ConfigField* field = section ? find_field(section->fields, name.substr(dot + 1)) : nullptr;
    CHECK(field, "there is no key {}", name);
    out += field_help(fmt::format("{} {}", name, example), *field);
  }
  return out;
}

std::string config_markdown(std::span<const ConfigSection> sections) {
  std::string out;
  for (const auto& section : sections) {
    out += fmt::format("## {}\n\n{}.\n\n| Key | Default | Allowed | Meaning |\n|---|---|---|---|\n", section.name, section.help);
    for (const auto& field : section.fields) {
      const std::string value = default_text(field);
      out += fmt::format("| `{}` | {} | {} | {} |\n", field.key, value.empty() ? "" : "`" + value + "`", allowed_text(field),
                         table_cell(field.help));
    }
    out += "\n";
  }
  return out;
}

}  // namespace starling
