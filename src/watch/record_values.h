// What a record of a run says, if it is what it should be: records may be anybody's.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace starling {

// Returns the text of a key, its first bytes if it is long, or "".
inline std::string text_of(const nlohmann::json& record, const char* key, size_t most = 1000) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get_ref<const std::string&>().substr(0, most) : "";
}

// Returns the finite number of a key.
inline std::optional<double> number_of(const nlohmann::json& record, const char* key) {
  const auto found = record.find(key);
  if (found == record.end() || !found->is_number()) return std::nullopt;
  const auto value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// Returns the number of an update.
inline std::optional<int64_t> step_of(const nlohmann::json& record, const char* key) {
  constexpr double kMost = 9e15;  // beyond, a double does not hold each of them
  const auto value = number_of(record, key);
  return value && *value >= 0 && *value <= kMost ? std::optional(static_cast<int64_t>(*value)) : std::nullopt;
}

// Returns the plain values of a record, without lists and objects, and of those a bounded number of bounded length.
inline nlohmann::json plain_values(const nlohmann::json& record) {
  constexpr size_t kMost = 100, kLongest = 1000;
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [key, value] : record.items()) {
    if (value.is_structured() || key.size() > kLongest || values.size() == kMost) continue;
    values[key] = value.is_string() ? nlohmann::json(text_of(record, key.c_str(), kLongest)) : value;
  }
  return values;
}

}  // namespace starling
