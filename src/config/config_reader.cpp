// Reads configurations. yaml-cpp does the parsing; types, ranges and messages are our own, because users know this code by its messages.
// Values are read as text and typed by the field, never guessed by YAML's rules, so `source: no` is the file "no".
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/quotes.h"
#include "config/config_fields.h"

namespace starling {
namespace {

constexpr size_t maximum_bytes = 1 << 20;  // a configuration is a page or two; more is the wrong file
constexpr size_t maximum_records = 10000;  // for a list of corpora; also stops chained YAML aliases from multiplying entries

class Reader {
 public:
  Reader(const std::string& file, std::span<const ConfigSection> sections, const ConfigAdvice& advice)
      : file_(file), sections_(sections), advice_(advice) {}

  // Returns the names of the keys assigned.
  std::set<std::string> document(const YAML::Node& root) {
    if (root.IsNull()) return {};
    if (!root.IsMap()) {
      fail(root, fmt::format("a configuration is a map of sections; begin with one of {}", joined(names_of(sections_), ":, ") + ":"));
    }
    std::set<std::string> seen;
    for (const auto& entry : root) section(entry.first, entry.second, seen);
    return std::move(assigned_);
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

  // Returns "strategy: {periodic: {...}}" for "strategy.periodic".
  static std::string nested(const std::string& name) {
    const size_t dot = name.find('.');
    return fmt::format("{}: {{{}}}", name.substr(0, dot), dot == std::string::npos ? "..." : nested(name.substr(dot + 1)));
  }

  void section(const YAML::Node& key, const YAML::Node& body, std::set<std::string>& seen) {
    const std::string name = key_text(key, seen);
    const ConfigSection* found = find_section(sections_, name);
    if (found && name.find('.') != std::string::npos)
      fail(key, fmt::format("{} is within another section; write {}", in_quotes(name), nested(name)));
    if (!found) {
      if (const std::string advice = advice_on(name); !advice.empty())
        fail(key, fmt::format("there is no section {}{}", in_quotes(name), advice));
      std::string hint = did_you_mean(name, names_of(sections_));
      if (hint.empty()) hint = did_you_mean(name, config_names(sections_));
      fail(key, fmt::format("there is no section {}{} The sections are {}", in_quotes(name), hint.empty() ? "." : hint,
                            joined(names_of(sections_))));
    }
    section(key, body, *found);
  }

  void section(const YAML::Node& key, const YAML::Node& body, const ConfigSection& found) {
    if (body.IsNull()) return;
    if (!body.IsMap())
      fail(key, fmt::format("the section {} must hold 'key: value' lines, indented by two more spaces{}", in_quotes(found.name),
                            advice_on(found.name)));
    map(body, found.name, found.fields);
  }

  void map(const YAML::Node& body, const std::string& prefix, const std::vector<ConfigField>& fields) {
    std::set<std::string> seen;
    for (const auto& entry : body) {
      const std::string key = key_text(entry.first, seen);
      const ConfigField* field = find_field(fields, key);
      if (!field && foreign(entry.first, key, entry.second, fields)) continue;
      std::string name = prefix + "." + key;
      if (const ConfigSection* inner = find_section(sections_, name)) {
        section(entry.first, entry.second, *inner);
        continue;
      }
      if (!field && advice_.moved_keys) {
        if (const std::string moved = moved_name(name, config_names(sections_)); !moved.empty()) name = moved;
        const auto [place, own] = section_of(sections_, name);
        field = place ? find_field(place->fields, own) : nullptr;
      }
      if (!field) unknown_key(entry.first, prefix, key, fields);
      value({where(entry.first), name, *field, advice_}, entry.second);
    }
  }

  // Returns whether a field for the keys of another configuration took the key.
  bool foreign(const YAML::Node& node, const std::string& key, const YAML::Node& body, const std::vector<ConfigField>& fields) const {
    if (key.find('.') == std::string::npos) return false;
    for (const ConfigField& field : fields)
      if (const auto keys = std::get_if<std::vector<ForeignKey>*>(&field.value)) {
        (*keys)->push_back({key, foreign_text({where(node), key, field, advice_}, body), where(node)});
        return true;
      }
    return false;
  }

  static std::string foreign_text(const ConfigTarget& t, const YAML::Node& body) {
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
    std::vector<std::string> keys = keys_of(fields), here;
    for (const auto& section : sections_)
      if (section.name.starts_with(prefix + ".")) keys.push_back(section.name.substr(prefix.size() + 1));
    for (const std::string& other : keys) here.push_back(prefix + "." + other);
    std::string hint = moved_hint(prefix + "." + key, config_names(sections_));
    if (hint.empty()) hint = advice_on(prefix + "." + key, here);
    if (key.find_first_not_of("0123456789") == key.npos)
      hint = "; within braces a comma ends the value: write 0.5 with a point, 25000 without separators";
    if (hint.empty()) hint = did_you_mean(key, keys);
    if (hint.empty()) hint = did_you_mean(key, config_names(sections_));
    if (hint.empty()) hint = fmt::format("; remove it, or use one of {}", joined(keys));
    fail(node, fmt::format("there is no key {} in {}{}", in_quotes(key), prefix, hint));
  }

  void value(const ConfigTarget& t, const YAML::Node& node) {
    assigned_.insert(t.name);
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
      t.fail(node.IsNull() ? "has no value; write one after the colon, or remove the line" : "must be a single value, not a list or a map");
    }
  }

  template <class T>
  void numbers(const ConfigTarget& t, const YAML::Node& node, const RangedList<T>& list) const {
    std::vector<std::string> items;
    strings(t, node, items);
    assign_items(t, list, items);
  }

  void strings(const ConfigTarget& t, const YAML::Node& node, std::vector<std::string>& out) const {
    std::vector<std::string> items;
    for (const auto& item : node) {
      if (!item.IsScalar()) t.fail("must be a list of plain values");
      items.push_back(item.Scalar());
      check_item(t, items.back());
    }
    out = std::move(items);
  }

  void records(const ConfigTarget& t, const YAML::Node& node, const RecordList& list) {
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

  // Returns the advice on a name that is unknown here; "" for none.
  std::string advice_on(const std::string& name, const std::vector<std::string>& more = {}) const {
    if (!advice_.key) return "";
    std::vector<std::string> known = config_names(sections_);
    known.insert(known.end(), more.begin(), more.end());
    return advice_.key(name, known);
  }

  const std::string& file_;
  std::span<const ConfigSection> sections_;
  const ConfigAdvice& advice_;
  std::set<std::string> assigned_;
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

// Turns yaml-cpp's error message into one that also names the fix.
std::string parse_problem(const std::string& message) {
  if (message == YAML::ErrorMsg::DOC_IN_SCALAR) return "a quote opened at or above this line is never closed; close it";
  if (message == YAML::ErrorMsg::BAD_FILE) return "not valid YAML: nested too deeply; a configuration has sections with keys, no more";
  return fmt::format("not valid YAML: {}; check indentation, quotes and brackets there", printable(message));
}

}  // namespace

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

std::set<std::string> ConfigDocument::read(std::span<const ConfigSection> sections, const ConfigAdvice& advice) const {
  return Reader(file_, sections, advice).document(*root_);
}

void apply_override(std::span<const ConfigSection> sections, const std::string& name, const std::string& text, const ConfigAdvice& advice) {
  const std::string place = "command line";
  const auto unknown = [&](const std::vector<std::string>& candidates) {
    std::string hint = moved_hint(name, candidates);
    if (hint.empty() && advice.key) hint = advice.key(name, candidates);
    if (hint.empty()) hint = did_you_mean(name, candidates);
    if (hint.empty() && find_section(sections, "train")) hint = "; 'starling help train --all' lists all keys";
    if (hint.empty()) hint = fmt::format("; use one of {}", joined(candidates));
    throw ConfigError(fmt::format("{}: there is no key {}{}", place, in_quotes(name), hint));
  };
  const auto [section, rest] = section_of(sections, name);
  if (!section) unknown(config_names(sections));
  const size_t dot = rest.find('.'), next = dot == std::string::npos ? dot : name.size() - rest.size() + dot;
  const ConfigField* field = find_field(section->fields, rest.substr(0, dot));
  if (!field) unknown(config_names(sections));
  if (next == std::string::npos) return assign_text({place, name, *field, advice}, text);

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
  assign_text({place, name, *inner, advice}, text);
}

}  // namespace starling
