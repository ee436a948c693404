// Keys that need others: describes the needs in words, and finds the keys without effect because their needs are not met.
#include <algorithm>

#include "config/config_fields.h"

namespace starling {
namespace {

bool is_met(const ConfigNeed& need, std::span<const ConfigSection> sections) {
  const auto [section, key] = section_of(sections, need.key);
  const ConfigField* field = section ? find_field(section->fields, key) : nullptr;
  CHECK(field, "there is no key {}, which another needs", need.key);
  const std::string value = value_text(*field);
  return need.values.empty() ? value != "0" : std::find(need.values.begin(), need.values.end(), value) != need.values.end();
}

}  // namespace

std::string need_text(const ConfigNeed& need) {
  if (need.values.empty()) return need.key;
  const size_t last = need.values.size() - 1;
  return fmt::format("{} {}{}{}", need.key, fmt::join(need.values.begin(), need.values.end() - 1, ", "), last > 0 ? " or " : "",
                     need.values[last]);
}

std::string described(const std::string& help, const std::vector<ConfigNeed>& needs) {
  std::string all;
  for (const ConfigNeed& need : needs) all += (all.empty() ? " (with " : ", ") + need_text(need);
  return help + all + (all.empty() ? "" : ")");
}

bool has_needs(const ConfigSection& section, std::span<const ConfigSection> sections) {
  return std::all_of(section.needs.begin(), section.needs.end(), [&](const ConfigNeed& n) { return is_met(n, sections); });
}

std::vector<std::string> idle_keys(std::span<const ConfigSection> sections, std::span<const std::vector<ConfigSection>> standards) {
  std::vector<std::string> idle;
  for (const ConfigSection& section : sections)
    for (const ConfigField& field : section.fields) {
      if (std::any_of(standards.begin(), standards.end(), [&](const auto& s) { return is_default(section.name, field, s); })) continue;
      for (const auto* needs : {&section.needs, &field.needs}) {
        const auto missing = std::find_if(needs->begin(), needs->end(), [&](const ConfigNeed& n) { return !is_met(n, sections); });
        if (missing == needs->end()) continue;
        idle.push_back(fmt::format("{}.{} does nothing without {}", section.name, field.key, need_text(*missing)));
        break;
      }
    }
  return idle;
}

void refuse_idle_keys(std::span<const ConfigSection> sections, std::span<const std::vector<ConfigSection>> standards) {
  const std::vector<std::string> idle = idle_keys(sections, standards);
  if (!idle.empty()) throw ConfigError(idle.front() + "; leave it out, or set that too");
}

}  // namespace starling
