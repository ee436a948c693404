#include "config/config_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/duration.h"
#include "base/utf8.h"
#include "config/meant_number.h"

namespace starling {

std::string joined(const std::vector<std::string>& items, std::string_view separator) {
  return fmt::format("{}", fmt::join(items, separator));
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

std::pair<const ConfigSection*, std::string> section_of(std::span<const ConfigSection> sections, const std::string& name) {
  const ConfigSection* found = nullptr;
  for (const auto& section : sections)
    if (name.starts_with(section.name + ".") && (!found || section.name.size() > found->name.size())) found = &section;
  return {found, found ? name.substr(found->name.size() + 1) : name};
}

std::vector<std::string> names_of(std::span<const ConfigSection> sections) {
  std::vector<std::string> names;
  for (const auto& section : sections)
    if (section.name.find('.') == std::string::npos) names.push_back(section.name);
  return names;
}

size_t first_bad_byte(std::string_view text) { return std::min(text.find('\0'), invalid_utf8_offset(text).value_or(text.npos)); }

void check_item(const ConfigTarget& t, const std::string& text) {
  if (first_bad_byte(text) != std::string::npos)
    t.fail(fmt::format("{} has a NUL byte or invalid UTF-8; give UTF-8 text", in_quotes(text)));
  const auto& allowed = t.field.choices;
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return;
  std::string hint = t.meant(text, ValueKind::word);
  if (hint.empty()) hint = did_you_mean(text, allowed);
  t.fail(fmt::format("{} is not allowed{} choose {} {}", in_quotes(text), hint.empty() ? ";" : hint, allowed.size() > 1 ? "one of" : "",
                     joined(allowed)));
}

namespace {

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
void assign(const ConfigTarget& t, const Ranged<T>& range, std::string_view text) {
  std::string_view digits = text;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  // If the name of the key ends with a unit of time, the value may also be a duration with units of its own.
  const std::optional<double> unit = std::is_same_v<T, double> ? unit_of_name(t.field.key) : std::nullopt;
  std::string converted;
  if (const auto seconds = duration_seconds(text); unit && seconds) digits = converted = fmt::format("{}", 1e6 * *seconds / (1e6 * *unit));
  T value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool negative_unsigned = std::is_unsigned_v<T> && digits.size() > 1 && digits[0] == '-';
  const bool whole = error != std::errc::invalid_argument && end == digits.data() + digits.size();
  if (!whole && !negative_unsigned) {
    constexpr bool real = std::is_same_v<T, double>;
    std::string meant = t.meant(text, real ? ValueKind::number : ValueKind::whole_number);
    if (const std::string number = meant_number(std::string(text), !real); meant.empty() && !number.empty())
      meant = fmt::format("; did you mean {}?", number);
    const std::string allowed = range_text(range.minimum, range.maximum) + (unit ? ", or a duration such as 90s, 12m or 1h30m" : "");
    t.fail(fmt::format("{} is not {}{}ive {}", in_quotes(text), number_word<T>(), meant.empty() ? "; g" : meant + " G", allowed));
  }
  bool inside = error == std::errc() && value >= range.minimum && value <= range.maximum;
  if constexpr (std::is_same_v<T, double>) inside = inside && std::isfinite(value);
  if (!inside) t.fail(fmt::format("{} is out of range; give {}", in_quotes(text), range_text(range.minimum, range.maximum)));
  *range.value = value;
}

void assign(const ConfigTarget& t, bool* value, std::string_view text) {
  if (text == "true" || text == "yes" || text == "on") {
    *value = true;
  } else if (text == "false" || text == "no" || text == "off") {
    *value = false;
  } else {
    t.fail(fmt::format("{} is neither true nor false; give one of these two", in_quotes(text)));
  }
}

void assign(const ConfigTarget& t, std::string* value, std::string_view text) {
  check_item(t, std::string(text));
  *value = text;
}

void assign(const ConfigTarget& t, const EnumValue& value, std::string_view text) {
  check_item(t, std::string(text));
  const auto& all = t.field.choices;
  *value.value = static_cast<unsigned char>(std::find(all.begin(), all.end(), text) - all.begin());
}

void assign(const ConfigTarget& t, std::vector<std::string>* value, std::string_view text) {
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
void assign(const ConfigTarget& t, const RangedList<T>& list, std::string_view text) {
  std::vector<std::string> items;
  assign(t, &items, text);
  assign_items(t, list, items);
}

void assign(const ConfigTarget& t, std::vector<ForeignKey>*, std::string_view text) {
  t.fail(fmt::format("{} cannot be set like this; write the other configuration's key, section.key, with its value", in_quotes(text)));
}

void assign(const ConfigTarget& t, const RecordList&, std::string_view text) {
  t.fail(fmt::format("{} is not a list; write a list of maps in the file, or set one value with --{}.0.KEY", in_quotes(text), t.name));
}

}  // namespace

template <class T>
void assign_items(const ConfigTarget& t, const RangedList<T>& list, const std::vector<std::string>& items) {
  std::vector<T> values(items.size());
  for (size_t i = 0; i < items.size(); ++i) assign(t, Ranged<T>{&values[i], list.minimum, list.maximum}, items[i]);
  *list.values = std::move(values);
}
template void assign_items(const ConfigTarget&, const RangedList<int64_t>&, const std::vector<std::string>&);
template void assign_items(const ConfigTarget&, const RangedList<double>&, const std::vector<std::string>&);

void assign_text(const ConfigTarget& t, std::string_view text) {
  std::visit([&](const auto& value) { assign(t, value, text); }, t.field.value);
}

}  // namespace starling
