// Times as records have them: UTC, "2026-11-21T07:05:09Z".
#pragma once

#include <fmt/chrono.h>

#include <chrono>
#include <ctime>
#include <optional>
#include <string>

namespace starling {

inline std::string iso_time(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

/// Returns the seconds since 1970 of such a text, or nullopt for any other.
inline std::optional<double> seconds_of(const std::string& time) {
  std::tm parts{};
  const char* end = strptime(time.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (!end || *end != '\0') return std::nullopt;
  return static_cast<double>(timegm(&parts));
}

}  // namespace starling
